"""The plugin behind `Agent(interventions=[...])`: asks handlers at the kernel's gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, final

import pydantic

from ropewalk import ToolCall, hookimpl
from ropewalk.kits.calls.verdicts import Moment, Verdict
from ropewalk.kits.hooks.adoption import InvalidParameterError
from ropewalk.types import ToolResult
from ropewalk_interventions.events import Running
from ropewalk_interventions.handler import MOMENTS, InterventionHandler, overrides, problem_of
from ropewalk_interventions.rounds import Round

if TYPE_CHECKING:
    from ropewalk.agent import Agent

_running: ContextVar[Running | None] = ContextVar("ropewalk_interventions_running", default=None)


@final
class InterventionsPlugin:
    """Takes handlers. It has no part in runs: an agent with handlers gets the plugin that asks them."""

    name = "interventions"

    class Config(pydantic.BaseModel):
        """Options of the plugin.

        Attributes:
            max_guidance: How often handlers may guide the model in one of its turns. One more is an error, for a
                model that does not take advice would be asked for ever.
        """

        max_guidance: int = pydantic.Field(default=3, ge=0)

    def __init__(self, config: Config | None = None) -> None:
        self._max_guidance = (config or self.Config()).max_guidance

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> Any:
        """Takes `interventions=`: a list of handlers.

        Raises:
            InvalidParameterError: It is none, an entry is no handler, or two have one name.
        """
        if parameter != "interventions":
            return None

        handlers = checked_handlers(value)
        return HandlersPlugin(handlers, self._max_guidance) if handlers else []


@final
class HandlersPlugin:
    """Asks the handlers of an agent before and after its invocations, model calls and tools.

    They see what the other plugins have made of a subject, and policies see what the handlers make of it.
    """

    name = "interventions-handlers"
    order = 900

    def __init__(self, handlers: tuple[InterventionHandler, ...], max_guidance: int) -> None:
        self._max_guidance = max_guidance
        self._handlers: dict[Moment, tuple[InterventionHandler, ...]] = {
            moment: tuple(each for each in handlers if overrides(each, moment)) for moment in MOMENTS
        }

    @hookimpl
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Keeps the call in hand for those who are asked about its result."""
        if not self._handlers["after_tool_call"]:
            return await call_next(call)

        token = _running.set(Running(call))
        try:
            return await call_next(call)
        finally:
            _running.reset(token)

    @hookimpl
    async def intervene(self, moment: Moment, subject: Any, agent: Agent) -> Verdict | None:
        """Asks the handlers in their order, and puts their answers together."""
        running = _running.get() if moment.endswith("tool_call") else None
        handlers = self._handlers[moment]
        if not handlers:
            _note(running, moment, subject)
            return None

        asked = Round(moment, subject, agent, running, self._max_guidance)
        verdict = await asked.verdict(handlers)
        _note(running, moment, asked.subject)
        return verdict


def _note(running: Running | None, moment: Moment, subject: Any) -> None:
    if running is not None and moment == "before_tool_call":
        running.passed(subject)


def checked_handlers(value: Any) -> tuple[InterventionHandler, ...]:
    """The handlers of a list.

    Raises:
        InvalidParameterError: It is no list, an entry is no handler, or two have one name.
    """
    if not isinstance(value, list | tuple):
        raise InvalidParameterError(f"Agent(interventions={value!r:.80}): give a list of InterventionHandlers")

    for place, handler in enumerate(value):
        problem = problem_of(handler)
        if problem:
            raise InvalidParameterError(f"Agent(interventions=[...]), entry {place}: {problem}")

    twice = [name for name, times in Counter(each.name for each in value).items() if times > 1]
    if twice:
        raise InvalidParameterError(
            f"Agent(interventions=[...]): two handlers are named {twice[0]!r}: give each a name of its own"
        )

    return tuple(value)
