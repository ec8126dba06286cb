"""Puts a summary in the place of messages, and takes it out again for the next one.

A summary is a text block of a user message. Where user messages would stand side by side they become one message; which
of its blocks is the summary stands in `message["metadata"]["custom"]["summary"]`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.context.keeping import has_results
from ropewalk.kits.messages.estimate import message_tokens
from ropewalk.kits.messages.repair import joined
from ropewalk.types import ContentBlock, Message

HEADER: Final = "[Summary of the conversation so far]"
_MARK: Final = "summary"


@dataclass(frozen=True, slots=True)
class Folding:
    """What a summary is made of, and where it will stand.

    Attributes:
        material: The messages that it replaces.
        earlier: The summary before it, which it replaces too.
        tokens: What material and earlier summary have now.
        before: What stays in front of it.
        after: What stays behind it, up to the place `end`.
        end: How many messages of the history all this stands for.
    """

    material: tuple[Message, ...]
    earlier: str | None
    tokens: int
    before: tuple[Message, ...]
    after: tuple[Message, ...]
    end: int

    def with_summary(self, text: str) -> list[Message]:
        """What stands in the place of the first `end` messages."""
        summary: Message = {
            "role": "user",
            "content": [{"text": f"{HEADER}\n{text}"}],
            "metadata": {"custom": {_MARK: 0}},
        }
        out: list[Message] = []
        for message in (*self.before, summary, *self.after):
            if out and out[-1]["role"] == message["role"] == "user" and not has_results(message):
                out[-1] = _joined(out[-1], message)
            else:
                out.append(message)

        return out

    def edit(self, ids: Sequence[int], text: str, reason: str) -> HistoryEdit:
        """The edit that puts the summary into the history."""
        return HistoryEdit(ids[0], ids[self.end - 1], tuple(self.with_summary(text)), reason)


def fold(messages: Sequence[Message], cut: int, kept: Collection[int], front: int = 0) -> Folding | None:
    """Plans the summary of what stands before a place.

    Args:
        messages: A valid history.
        cut: The place; a legal one (see `next_cut`).
        kept: Places before it that stay as they are; whole tool turns.
        front: How many messages at the start stay in front of the summary, if they are kept.

    Returns:
        The plan; None when nothing would be gained.
    """
    before: list[Message] = []
    after: list[Message] = []
    material: list[Message] = []
    earlier: list[str] = []
    for place, message in enumerate(messages[:cut]):
        summary, rest = unfolded(message)
        if summary is not None:
            earlier.append(summary)

        if rest is None:
            continue

        if place not in kept:
            material.append(rest)
        else:
            (before if place < front else after).append(rest)

    if not material:
        return None

    follows = messages[cut] if cut < len(messages) else None
    joins = not after or after[-1]["role"] == "user"
    if follows is not None and joins and follows["role"] == "user" and not has_results(follows):
        summary, rest = unfolded(follows)  # joins the summary, or the user's words that stay behind it
        earlier += [] if summary is None else [summary]
        after += [] if rest is None else [rest]
        cut += 1

    text = "\n\n".join(earlier) or None
    tokens = sum(map(message_tokens, material)) + (0 if text is None else message_tokens(_saying(text)))
    return Folding(tuple(material), text, tokens, tuple(before), tuple(after), cut)


def unfolded(message: Message) -> tuple[str | None, Message | None]:
    """The summary in a message, and the message without it; None where there is no such part."""
    custom = _custom(message)
    if _MARK not in custom or message["role"] != "user":
        return None, message

    content = message["content"]
    found = [place for place, block in enumerate(content) if str(block.get("text", "")).startswith(HEADER)]
    place = custom[_MARK] if custom[_MARK] in found else (found[0] if found else None)
    if place is None:
        return None, message

    text = str(content[place]["text"]).removeprefix(HEADER).strip()
    rest = [block for at, block in enumerate(content) if at != place]
    return text, _marked(message, rest, None) if rest else None


def first_words(messages: Sequence[Message]) -> int | None:
    """Where the first task stands (see `first_task`), whatever summaries stand before it; None when there is none."""
    for place, message in enumerate(messages):
        if message["role"] == "user" and not has_results(message) and unfolded(message)[1] is not None:
            return place

    return None


def best_cut(messages: Sequence[Message], wanted: int, most: int) -> int:
    """The first legal place from `wanted` to `most` to cut at, else the last one before; 0 when there is none.

    A place where the assistant goes on is preferred: the summary is the user's, and stands alone there.
    """
    end = len(messages)
    legal = [at for at in range(1, min(most, end) + 1) if at == end or not has_results(messages[at])]
    later = [at for at in legal if at >= wanted]
    for at in later:
        if at < end and messages[at]["role"] == "assistant":
            return at

    return later[0] if later else (legal[-1] if legal else 0)


def _joined(one: Message, other: Message) -> Message:
    customs = (_custom(one), _custom(other))
    mark = customs[0].get(_MARK)
    if mark is None and _MARK in customs[1]:
        mark = customs[1][_MARK] + len(one["content"])

    message = joined(one, other, other["content"])
    return _marked(message, message["content"], mark)


def _marked(message: Message, content: list[ContentBlock], mark: int | None) -> Message:
    custom = {key: value for key, value in _custom(message).items() if key != _MARK}
    if mark is not None:
        custom[_MARK] = mark

    metadata = {key: value for key, value in _metadata(message).items() if key != "custom"}
    if custom:
        metadata["custom"] = custom

    bare = {key: value for key, value in message.items() if key != "metadata"}
    marked = {**bare, "content": content}
    return cast("Message", {**marked, "metadata": metadata} if metadata else marked)


def _saying(text: str) -> Message:
    return {"role": "user", "content": [{"text": text}]}


def _metadata(message: Message) -> dict[str, Any]:
    metadata: Any = message.get("metadata")
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def _custom(message: Message) -> dict[str, Any]:
    custom: Any = _metadata(message).get("custom")
    return dict(custom) if isinstance(custom, Mapping) else {}
