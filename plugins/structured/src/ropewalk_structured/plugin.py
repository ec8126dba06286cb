"""The plugin that is active unasked: it has no part in runs until structured output is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, final

import pydantic

from ropewalk import hookimpl
from ropewalk.kits.suspension.answers import resumes
from ropewalk_structured import keeping
from ropewalk_structured.aside import fill
from ropewalk_structured.engine import MODEL, PROMPT, StructuredOutput, check_free, engine_of
from ropewalk_structured.prompt import StructuredOutputPrompt, checked_prompt
from ropewalk_structured.session import DEFAULT_MAX_ATTEMPTS
from ropewalk_structured.stop import OutputStop
from ropewalk_structured.target import target_of

if TYPE_CHECKING:
    from ropewalk import Agent, CallOptions


@final
class StructuredPlugin:
    """Takes the parameters, options and methods of structured output."""

    name = "structured"

    class Config(pydantic.BaseModel):
        """Options of the plugin.

        Attributes:
            max_attempts: How many answers of one call may fail validation before StructuredOutputException is raised.
        """

        max_attempts: int = pydantic.Field(default=DEFAULT_MAX_ATTEMPTS, ge=1)

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or self.Config()
        self._engine = StructuredOutput(self._config.max_attempts)
        self._stop = OutputStop()

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> Any:
        """Makes the plugins that hold the agent's output model, or its prompt.

        Raises:
            OutputModelError: The value is no output model.
            TypeError: The prompt is no text.
            ValueError: The prompt is blank.
        """
        if parameter == MODEL:
            return [StructuredOutput(self._config.max_attempts, target_of(value)), self._stop]

        return StructuredOutputPrompt(checked_prompt(value)) if parameter == PROMPT else None

    @hookimpl
    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Checks a call's own output model and prompt, and gives the agent the engine when it is the first one.

        Raises:
            OutputModelError: It is no output model.
            TypeError: The prompt is no text.
            ValueError: The prompt is blank or there is no output model for it, or a tool bears the model's name.
            ResumeError: The call goes on with a paused run, whose output model is another one or is not known here.
        """
        given, pause = options.given, agent.suspension
        if MODEL not in given and PROMPT not in given and pause is None:
            return

        engine = engine_of(agent)
        target = target_of(given[MODEL]) if MODEL in given else None
        if pause is not None:
            if resumes(options.prompt, pause):
                own = engine.target if engine is not None else None
                target = keeping.target_to_resume(agent, pause, target, own)

            if engine is None and self._engine.name in pause.plugins:  # it took part, and does again
                engine = self._add_engine(agent)

        if PROMPT in given:
            checked_prompt(given[PROMPT])
            if target is None and (engine is None or engine.target is None):
                raise ValueError(f"{PROMPT} is given without an output model: give {MODEL} too, or leave it out")

        if target is not None:
            check_free(target, agent)
            if engine is None:
                self._add_engine(agent)

    def _add_engine(self, agent: Agent) -> StructuredOutput:
        agent.add_plugin(self._engine)
        agent.add_plugin(self._stop)
        return self._engine

    @hookimpl
    def provide_method(self, name: str, agent: Agent) -> Callable[..., Any] | None:
        """Brings `Agent.structured_output_async`, on which `Agent.structured_output` stands."""
        return partial(fill, agent, self._engine) if name == "structured_output_async" else None
