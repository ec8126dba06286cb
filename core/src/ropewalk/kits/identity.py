"""Checks of an agent's plain parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ropewalk.model import Model
from ropewalk.types import SystemContentBlock

_SYSTEM_KEYS = {"text", "cachePoint", "guardContent"}


def checked_agent_id(agent_id: str | None) -> str:
    """The id, fit to name a folder.

    Raises:
        ValueError: It has path separators, or is `.` or `..` or blank.
    """
    if agent_id is None:
        return "default"

    if not isinstance(agent_id, str) or not agent_id.strip() or agent_id in (".", "..") or set(agent_id) & set("/\\\0"):
        raise ValueError(
            f"agent_id {agent_id!r} is blank or cannot contain path separators: use letters, digits, - and _"
        )

    return agent_id


def check_trace_attributes(attributes: Any) -> None:
    """Looks at the attributes of an agent's spans.

    Raises:
        TypeError: One has a value that spans cannot carry; the key is named.
    """
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError(f"trace_attributes is {type(attributes).__name__}: pass a dict")

    for key, value in (attributes or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        if not isinstance(key, str) or not all(isinstance(each, str | bool | int | float) for each in values):
            raise TypeError(
                f"trace_attributes[{key!r}] is {type(value).__name__}: use str, bool, int, float or a list of those"
            )


def checked_model(model: Any) -> Model | str | None:
    """The model as given.

    Raises:
        TypeError: It is neither a name nor anything that streams.
    """
    if (
        model is None
        or isinstance(model, str)
        or (callable(getattr(model, "stream", None)) and not isinstance(model, type))
    ):
        return cast("Model | str | None", model)

    raise TypeError(f"model is {model!r:.80}: pass a model string, or an object with a method stream(request)")


def system_blocks(prompt: str | list[SystemContentBlock] | None) -> tuple[SystemContentBlock, ...]:
    """The system prompt as blocks.

    Raises:
        ValueError: It is neither text nor a list of blocks.
    """
    if prompt is None:
        return ()

    if isinstance(prompt, str):
        return ({"text": prompt},)

    blocks: list[Any] = list(prompt) if isinstance(prompt, list | tuple) else [None]
    if not all(isinstance(block, dict) and not _SYSTEM_KEYS.isdisjoint(block) for block in blocks):
        raise ValueError(f'system_prompt is {prompt!r:.80}: pass a str or a list of blocks such as [{{"text": "..."}}]')

    return tuple(cast("list[SystemContentBlock]", blocks))
