"""The plugin that is active unasked: it has no part in runs until structured output is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, final

import pydantic

from ropewalk import hookimpl
from ropewalk_structured.aside import fill
from ropewalk_structured.engine import MODEL, PROMPT, OutputStop, StructuredOutput, check_free, engine_of
from ropewalk_structured.prompt import StructuredOutputPrompt, checked_prompt
from ropewalk_structured.session import DEFAULT_MAX_ATTEMPTS
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
        """
        given = options.given
        if MODEL not in given and PROMPT not in given:
            return

        engine = engine_of(agent)
        if PROMPT in given:
            checked_prompt(given[PROMPT])
            if MODEL not in given and (engine is None or engine.target is None):
                raise ValueError(f"{PROMPT} is given without an output model: give {MODEL} too, or leave it out")

        if MODEL in given:
            check_free(target_of(given[MODEL]), agent)
            if engine is None:
                agent.add_plugin(self._engine)
                agent.add_plugin(self._stop)

    @hookimpl
    def provide_method(self, name: str, agent: Agent) -> Callable[..., Any] | None:
        """Brings `Agent.structured_output_async`, on which `Agent.structured_output` stands."""
        return partial(fill, agent, self._engine) if name == "structured_output_async" else None
