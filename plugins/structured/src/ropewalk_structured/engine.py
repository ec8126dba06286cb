"""The plugins in the loop. Agents have them only when they are asked for structured output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, final

from ropewalk import hookimpl
from ropewalk.outcomes import ModelOutcome, Stop, ToolsOutcome
from ropewalk.tools import ToolBatch, ToolCall
from ropewalk_structured.prompt import prompt_of
from ropewalk_structured.session import Session, current, session_of
from ropewalk_structured.target import target_of
from ropewalk_structured.tool import OutputTool

if TYPE_CHECKING:
    from ropewalk import Agent, AgentResult, CallOptions, Denied, Invocation, ModelRequest, Retry
    from ropewalk.types import ContentBlock, Message, ToolResult
    from ropewalk_structured.target import Target

MODEL: Final = "structured_output_model"
PROMPT: Final = "structured_output_prompt"

_FINAL: Final = frozenset({"content_filtered", "guardrail_intervened"})
"""Stop reasons after which the model is not asked again: what it refuses to say it refuses as an object too."""


@final
class StructuredOutput:
    """Offers the output model as a tool, takes what the model fills it with, and asks when the model forgets it.

    Its chain links stand innermost: a run that a hook repeats starts with nothing filled, and what other plugins
    change in a request stays.

    Args:
        max_attempts: How many answers may be wrong.
        target: The agent's own output model, for calls that name none.
    """

    name = "structured-output"

    def __init__(self, max_attempts: int, target: Target | None = None) -> None:
        self.max_attempts: Final = max_attempts
        self.target: Final = target

    @hookimpl
    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Refuses the agent's output model when a tool bears its name."""
        if self.target is not None and MODEL not in options.given:
            check_free(self.target, agent)

    @hookimpl(trylast=True)
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Opens the session, and puts the output into the result."""
        given = invocation.options.given
        model = given.get(MODEL)
        target = self.target if model is None else target_of(model)
        session = (
            None if target is None else Session(agent, target, given.get(PROMPT) or prompt_of(agent), self.max_attempts)
        )
        with current(session):
            result = await call_next(invocation)

        if session is not None and session.filled and hasattr(result, "structured_output"):
            result.structured_output = session.value

        return result

    @hookimpl(trylast=True)
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> ModelOutcome | Retry:
        """Puts the output model into the request."""
        session = session_of(agent)
        if session is None:
            return await call_next(request)

        native = session.forced and getattr(agent.model, "supports_output_schema", False) is True
        outcome = await call_next(session.request(request, native=native))
        if isinstance(outcome, ModelOutcome):
            session.stop_reason = outcome.stop_reason

        return outcome

    @hookimpl(trylast=True)
    async def around_tools(
        self, batch: ToolBatch, call_next: Callable[[ToolBatch], Awaitable[ToolsOutcome]], agent: Agent
    ) -> ToolsOutcome:
        """Gives calls of the output model their tool, which runs as any other: hooks, gates, log and metrics apply.

        Once every tool of the message has answered, the first valid call is taken.
        """
        session = session_of(agent)
        if session is None or session.filled:
            return await call_next(batch)

        calls = tuple(_equipped(call, session) for call in batch.calls)
        outcome = await call_next(ToolBatch(calls, batch.invocation_state))
        if isinstance(outcome, ToolsOutcome):  # the kernel complains of anything else
            session.settle([call.tool_use for call in calls], outcome.results)

        return outcome

    @hookimpl(trylast=True)
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """Gives the tool to a call that a hook has renamed."""
        session = session_of(agent)
        return await call_next(call if session is None or call.tool is not None else _equipped(call, session))

    @hookimpl(trylast=True)
    async def decide_continue(self, message: Message, agent: Agent) -> list[ContentBlock] | None:
        """Asks for the output when the model has ended its turn without it."""
        session = session_of(agent)
        if session is None or session.filled or session.stop_reason in _FINAL:
            return None

        if not session.forced:
            session.forced = True
            return [{"text": session.prompt}]

        problem = session.take_text(message)
        return None if problem is None else [{"text": problem}]


@final
class OutputStop:
    """Ends the run when there is an output, or when there were too many attempts at one.

    A plugin of its own because of its place: before every limit, since a run that is done has not run into one.
    """

    name = "structured-output-stop"
    order = -1_000

    @hookimpl
    async def decide_stop(self, agent: Agent) -> Stop | None:
        """Stops at the top of the next cycle, when the other tools of the message have run."""
        session = session_of(agent)
        if session is None:
            return None

        session.check()
        return Stop("tool_use") if session.filled else None


def _equipped(call: ToolCall, session: Session) -> ToolCall:
    return call.with_tool(OutputTool(session)) if call.tool_use["name"] == session.target.name else call


def check_free(target: Target, agent: Agent) -> None:
    """Refuses an output model that has the name of a tool.

    Raises:
        ValueError: It has.
    """
    taken = agent.tool_registry.find(target.name)
    if taken is not None:
        raise ValueError(
            f"Tool '{taken.tool_name}' already exists, and the output model {target.name!r} is offered as a tool of "
            "that name: rename one of the two"
        )


def engine_of(agent: Agent) -> StructuredOutput | None:
    """The agent's engine, if it has one."""
    return next((plugin for plugin in agent.hooks.plugins if isinstance(plugin, StructuredOutput)), None)
