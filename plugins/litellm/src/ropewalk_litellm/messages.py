"""The conversation in OpenAI's shape, as LiteLLM takes it for every provider."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ropewalk.kits.json_values import strict_json
from ropewalk.kits.messages.rules import BLANK
from ropewalk.types import Message
from ropewalk_litellm.cache_points import SYSTEM, Marks
from ropewalk_litellm.media import media_part
from ropewalk_litellm.signatures import signed_id
from ropewalk_litellm.thinking import thinking_of

Part = dict[str, Any]
_NOTHING: Final = "[no content]"


def chat_messages(
    system: Sequence[Mapping[str, Any]],
    messages: Sequence[Message],
    marks: Marks,
    *,
    signed: bool = False,
    thinking: bool = True,
) -> list[dict[str, Any]]:
    """Everything that a request says, without its tools. Nothing that was passed in is written to.

    Args:
        system: The system prompt's blocks.
        messages: The conversation.
        marks: Where cache points stand.
        signed: Give tool calls their signatures back, in their ids.
        thinking: Give thinking back.

    Raises:
        ModelRequestError: A block has no form that the provider could be sent.
    """
    chat: list[dict[str, Any]] = []
    said = [(_text(block), marks.at(SYSTEM, i)) for i, block in enumerate(system)]
    parts: list[Part] = [{"type": "text", "text": text, **mark} for text, mark in said if text is not None]
    if parts:
        chat.append({"role": "system", "content": _content(parts)})

    ids: dict[str, str] = {}
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            if signed:
                uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
                ids.update({use["toolUseId"]: signed_id(use) for use in uses})

            thought = thinking_of(message["content"]) if thinking else {}
            chat.append({**_assistant(message["content"], index, marks, ids), **thought})
        else:
            chat.extend(_user(message["content"], index, marks, ids))

    return chat


def _assistant(blocks: Sequence[Mapping[str, Any]], index: int, marks: Marks, ids: Mapping[str, str]) -> dict[str, Any]:
    parts: list[Part] = []
    calls: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        mark = marks.at(index, place)
        if "toolUse" in block:
            use = block["toolUse"]
            arguments = json.dumps(strict_json(use["input"]), ensure_ascii=False)
            function = {"name": use["name"], "arguments": arguments}
            use_id = ids.get(use["toolUseId"], use["toolUseId"])
            calls.append({"id": use_id, "type": "function", "function": function, **mark})
        elif (text := _text(block)) is not None:
            parts.append({"type": "text", "text": text, **mark})

    message: dict[str, Any] = {"role": "assistant", "content": _content(parts)}
    if calls:
        message["tool_calls"] = calls
    elif not parts:
        message["content"] = BLANK

    return message


def _user(
    blocks: Sequence[Mapping[str, Any]], index: int, marks: Marks, ids: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Tool results are messages of their own, first; what they cannot carry and the rest follow as the user's."""
    results: list[dict[str, Any]] = []
    moved: list[Part] = []
    parts: list[Part] = []
    for place, block in enumerate(blocks):
        mark = marks.at(index, place)
        if "toolResult" in block:
            result = block["toolResult"]
            use_id = ids.get(result["toolUseId"], result["toolUseId"])
            message, media = _tool_result(result, mark)
            results.append({**message, "tool_call_id": use_id})
            moved += media
        elif (part := media_part(block.get("guardContent") or block)) is not None:
            parts.append({**part, **mark})
        elif (text := _text(block)) is not None:
            parts.append({"type": "text", "text": text, **mark})

    content = _content([*moved, *parts])
    return [*results, {"role": "user", "content": content or BLANK}] if content or not results else results


def _tool_result(result: Mapping[str, Any], mark: dict[str, Any]) -> tuple[dict[str, Any], list[Part]]:
    """The message of a tool's result, and its images and files: a result has only text in this shape."""
    use_id = result["toolUseId"]
    texts: list[str] = []
    media: list[Part] = []
    for piece in result["content"]:
        if "text" in piece:
            texts.append(piece["text"])
        elif "json" in piece:
            texts.append(json.dumps(strict_json(piece["json"]), ensure_ascii=False))
        elif (part := media_part(piece)) is not None:
            if part["type"] == "text":
                texts.append(part["text"])
            else:
                media.append(part)

    if media:
        texts.append("[What the tool showed follows in the next message.]")
        media.insert(0, {"type": "text", "text": f"[Shown by the tool call {use_id}:]"})

    text = "\n".join(texts) if any(each.strip() for each in texts) else _NOTHING
    if result.get("status") == "error" and not text.lower().startswith("error"):
        text = f"Error: {text}"  # the only way to say it in this shape

    content: Any = [{"type": "text", "text": text, **mark}] if mark else text
    return {"role": "tool", "tool_call_id": use_id, "content": content}, media


def _text(block: Mapping[str, Any]) -> str | None:
    """The text that a block comes down to; None when it has none, or a blank one, which providers refuse."""
    text = ""
    if "text" in block:
        text = str(block["text"])
    elif "guardContent" in block:
        text = str((block["guardContent"].get("text") or {}).get("text", ""))
    elif "citationsContent" in block:
        text = "".join(str(piece.get("text", "")) for piece in block["citationsContent"].get("content", ()))

    return text if text.strip() else None


def _content(parts: list[Part]) -> Any:
    """A plain text where that says it all, which every server understands; None for nothing."""
    if not parts:
        return None

    first = parts[0]
    plain = len(parts) == 1 and first.keys() == {"type", "text"}
    return first["text"] if plain else parts
