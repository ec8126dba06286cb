"""What makes a message legal, and what makes a list of messages a valid history.

A valid history alternates between user and assistant; every assistant message with tool uses is followed at once by
one user message that holds exactly one result per use, results first; no id is used twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, cast

from ropewalk.errors import HistoryError
from ropewalk.kits.json_values import clean_text, strict_json
from ropewalk.types import CONTENT_KEYS, ContentBlock, Message, ToolUse

FreeId: TypeAlias = Callable[[object, set[str]], str]
"""Takes the id a model gave and the ids of the same message; gives one that is legal and new to the conversation."""

# Limits of the Converse API (API_runtime_ToolUseBlock, API_runtime_ToolSpecification), the strictest of the providers.
_LEGAL_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_LEGAL_NAME: Final = _LEGAL_ID

BLANK: Final = "[blank text]"
INVALID_TOOL_NAME: Final = "INVALID_TOOL_NAME"
OUTCOME_UNKNOWN: Final = (
    "The tool call was interrupted: it may or may not have taken effect, and its outcome is unknown."
)
NEVER_STARTED: Final = "The tool call was never started: the run ended first."
LEADING_USER: Final[Message] = {
    "role": "user",
    "content": [{"text": "[The conversation begins with the assistant's message.]"}],
}


def is_legal_id(value: object) -> bool:
    """Whether every provider takes the value as a tool-use id."""
    return isinstance(value, str) and _LEGAL_ID.fullmatch(value) is not None


def is_legal_tool_name(value: object) -> bool:
    """Whether every provider takes the value as a tool name."""
    return isinstance(value, str) and _LEGAL_NAME.fullmatch(value) is not None


def tool_uses(message: Message) -> list[ToolUse]:
    """The tool uses of a message, in order."""
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]


def results_first(blocks: Iterable[ContentBlock]) -> list[ContentBlock]:
    """The blocks with tool results before everything else, as providers demand."""
    blocks = list(blocks)
    results = [b for b in blocks if "toolResult" in b]
    return results + [b for b in blocks if "toolResult" not in b] if results else blocks


def sendable(message: Message) -> Message:
    """The message as it may be sent: no blank texts, no empty content, legal tool names. Itself when all is well."""
    content = message["content"]
    for block in content:
        text = block.get("text")
        if (text is not None and not text.strip()) or (
            "toolUse" in block and not is_legal_tool_name(block["toolUse"]["name"])
        ):
            break
    else:
        if content:
            return message

    kept: list[ContentBlock] = [_legal_name(b) for b in content if "text" not in b or b["text"].strip()]
    return {**message, "content": kept or [{"text": BLANK}]}


def _legal_name(block: ContentBlock) -> ContentBlock:
    use = block.get("toolUse")
    if use is None or is_legal_tool_name(use["name"]):
        return block

    return {"toolUse": {**use, "name": INVALID_TOOL_NAME}}


def checked_message(value: Any, where: str) -> Message:
    """A copy of a message from outside; its blocks are shared, never written to.

    Raises:
        HistoryError: It is no message; the text names the place and the field.
    """
    if not isinstance(value, dict):
        raise HistoryError(f'{where} is {type(value).__name__}: a message is a dict {{"role": ..., "content": [...]}}')

    if value.get("role") not in ("user", "assistant"):
        raise HistoryError(f'{where}["role"] is {value.get("role")!r}: use "user" or "assistant"')

    content = value.get("content")
    if not isinstance(content, list | tuple):
        raise HistoryError(
            f'{where}["content"] is {type(content).__name__}: use a list of blocks such as [{{"text": "hello"}}]'
        )

    blocks = [checked_block(block, f'{where}["content"][{i}]') for i, block in enumerate(content)]
    if value["role"] == "user" and any("toolUse" in block for block in blocks):
        raise HistoryError(f"{where} is a user message with a toolUse: only the assistant asks for tools")

    return cast("Message", {**value, "content": blocks})


def checked_answer(value: Any, where: str, free_id: FreeId) -> Message:
    """A copy of a message that a hook puts in the model's place; its tool-use ids are made legal and new.

    Raises:
        HistoryError: It is no message of an assistant.
    """
    message = checked_message(value, where)
    if message["role"] != "assistant" or any("toolResult" in block for block in message["content"]):
        raise HistoryError(f"{where} is no answer of a model: use role assistant, and no tool results")

    taken: set[str] = set()
    content: list[ContentBlock] = []
    for block in message["content"]:
        use = block.get("toolUse")
        if use is not None:
            use_id = free_id(use["toolUseId"], taken)
            taken.add(use_id)
            block = {**block, "toolUse": {**use, "toolUseId": use_id}}  # noqa: PLW2901 - the same one with a legal id

        content.append(block)

    return {**message, "content": content}


def checked_said(value: Any, where: str) -> list[ContentBlock]:
    """Content that a hook says in somebody's name: no tool uses and results, for those answer one another.

    Raises:
        HistoryError: It is something else.
    """
    if not isinstance(value, list | tuple):
        raise HistoryError(f'{where} is {type(value).__name__}: use a list of blocks such as [{{"text": "hello"}}]')

    blocks = [checked_block(block, f"{where}[{i}]") for i, block in enumerate(value)]
    if any("toolUse" in block or "toolResult" in block for block in blocks):
        raise HistoryError(
            f"{where} holds a tool use or a tool result, which come from the model and its tools: use text"
        )

    return blocks


def checked_block(value: Any, where: str) -> ContentBlock:
    """One content block from outside, its text made valid Unicode.

    Raises:
        HistoryError: It is no content block.
    """
    if isinstance(value, dict) and None in value.values():  # as some libraries write what is not there
        said = {key: each for key, each in value.items() if each is not None}
        value = value if CONTENT_KEYS.isdisjoint(said) else said

    if not isinstance(value, dict) or CONTENT_KEYS.isdisjoint(value):
        raise HistoryError(f"{where} is no content block: use a dict with one of {', '.join(sorted(CONTENT_KEYS))}")

    if "text" in value:
        text = value["text"]
        if not isinstance(text, str):
            raise HistoryError(f'{where}["text"] is {type(text).__name__}: use a str')

        clean = clean_text(text)
        if clean is not text:
            return cast("ContentBlock", {**value, "text": clean})

    for key, fields in _FIELDS.items():
        if key in value:
            _check_fields(value[key], fields, f'{where}["{key}"]')

    if "toolResult" in value:
        result = value["toolResult"]
        content = [_clean_piece(piece) for piece in result["content"]]
        return cast("ContentBlock", {**value, "toolResult": {**result, "content": content}})

    return cast("ContentBlock", value)


def _clean_piece(piece: Any) -> Any:
    """A piece of a tool result, its text valid Unicode and its JSON strict; images and documents keep their bytes."""
    if isinstance(piece, dict) and isinstance(piece.get("text"), str):
        return {**piece, "text": clean_text(piece["text"])}

    return {**piece, "json": strict_json(piece["json"])} if isinstance(piece, dict) and "json" in piece else piece


_FIELDS: Final[dict[str, dict[str, type]]] = {
    "toolUse": {"toolUseId": str, "name": str, "input": dict},
    "toolResult": {"toolUseId": str, "content": list},
}


def _check_fields(inner: Any, fields: dict[str, type], where: str) -> None:
    if not isinstance(inner, dict) or not inner.keys() >= fields.keys():
        raise HistoryError(f"{where} lacks one of {', '.join(fields)}: add it")

    for name, kind in fields.items():
        if not isinstance(inner[name], kind):
            raise HistoryError(f'{where}["{name}"] is {type(inner[name]).__name__}: use a {kind.__name__}')


def closing_results(uses: Sequence[ToolUse], text: str) -> list[ContentBlock]:
    """An error result for each use."""
    return [
        {"toolResult": {"toolUseId": use["toolUseId"], "status": "error", "content": [{"text": text}]}} for use in uses
    ]


def checked_closing(value: Any) -> list[ContentBlock] | None:
    """What `ToolsOutcome.end_turn` says, a text or blocks; None when it does not end the turn."""
    if value is None:
        return None

    return checked_said([{"text": value}] if isinstance(value, str) else value, "ToolsOutcome.end_turn")
