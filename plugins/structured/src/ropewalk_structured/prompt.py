"""The text that asks a model for the output it has not given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ropewalk import hookimpl
from ropewalk.kits.json_values import clean_text
from ropewalk_structured.session import DEFAULT_PROMPT

if TYPE_CHECKING:
    from ropewalk import Agent


@final
class StructuredOutputPrompt:
    """Holds `Agent(structured_output_prompt=...)`; it has no part in runs."""

    name = "structured-output-prompt"

    def __init__(self, text: str) -> None:
        self.text = text

    @hookimpl
    def on_agent_ready(self) -> None:
        """Nothing; a plugin has at least one hook, and this one costs no run anything."""


def prompt_of(agent: Agent) -> str:
    """The agent's own prompt, or the default."""
    found = (plugin.text for plugin in agent.hooks.plugins if isinstance(plugin, StructuredOutputPrompt))
    return next(found, DEFAULT_PROMPT)


def checked_prompt(value: Any) -> str:
    """A prompt from outside.

    Raises:
        TypeError: It is no text.
        ValueError: It is blank.
    """
    if not isinstance(value, str):
        raise TypeError(f"structured_output_prompt is {type(value).__name__}: give a text")

    if not value.strip():
        raise ValueError("structured_output_prompt is blank, which providers refuse: give a text, or leave it out")

    return clean_text(value)
