"""Turns whatever an agent is called with into messages, before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from ropewalk.errors import HistoryError, InvalidPromptError, MissingPluginError
from ropewalk.kits.json_values import clean_text
from ropewalk.kits.messages.rules import checked_block, checked_message
from ropewalk.model import ModelRequest
from ropewalk.types import AgentInput, ContentBlock, Message

_FORMS = "a str, a list of content blocks, a list of messages, or None to go on with the history"


def prompt_messages(prompt: AgentInput) -> tuple[Message, ...]:
    """Copies of the prompt's messages; the caller's objects are never written to.

    Raises:
        InvalidPromptError: The prompt has none of the forms; nothing was done.
    """
    if prompt is None:
        return ()

    if isinstance(prompt, str):
        if not prompt.strip():
            raise InvalidPromptError(
                "the prompt is blank, which providers refuse: pass text, or None to go on with the history"
            )

        return ({"role": "user", "content": [{"text": clean_text(prompt)}]},)

    if isinstance(prompt, dict):
        return _resume(prompt)

    if isinstance(prompt, list | tuple):
        return _listed(list(prompt))

    raise InvalidPromptError(f"the prompt is {type(prompt).__name__}: Input prompt must be of type {_FORMS}")


def _listed(prompt: list[Any]) -> tuple[Message, ...]:
    if not prompt:
        return ()

    if not all(isinstance(item, dict) for item in prompt):
        kinds = sorted({type(item).__name__ for item in prompt})
        raise InvalidPromptError(f"the prompt is a list of {', '.join(kinds)}: Input prompt must be of type {_FORMS}")

    if all("interruptResponse" in item for item in prompt):
        raise InvalidPromptError("the prompt answers an interrupt and none is pending: pass a prompt, or None to go on")

    try:
        if all("role" in item and "content" in item for item in prompt):
            return tuple(checked_message(item, f"prompt[{i}]") for i, item in enumerate(prompt))

        content = [checked_block(item, f"prompt[{i}]") for i, item in enumerate(prompt)]
    except HistoryError as error:
        raise InvalidPromptError(f"{error}; Input prompt must be of type {_FORMS}") from error

    return ({"role": "user", "content": content},)


def _resume(prompt: dict[str, Any]) -> tuple[Message, ...]:
    if "checkpointResume" in prompt:
        raise MissingPluginError('the prompt {"checkpointResume": ...}', "ropewalk-checkpoint")

    keys = cast("list[str]", sorted(map(str, prompt)))
    raise InvalidPromptError(
        f"the prompt is a dict with {', '.join(keys) or 'no keys'}: Input prompt must be of type {_FORMS}"
    )


def with_user_blocks(request: ModelRequest, blocks: Sequence[ContentBlock]) -> ModelRequest:
    """The request with blocks at the end of its last user message, or in a new one behind the assistant's."""
    messages = list(request.messages)
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], *blocks]}
    else:
        messages.append({"role": "user", "content": list(blocks)})

    return replace(request, messages=messages)
