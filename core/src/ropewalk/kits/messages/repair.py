"""Turns any list of messages into a valid history, changing as little as possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN, checked_message, closing_results, is_legal_id, results_first
from ropewalk.types import ContentBlock, Message, ToolUse


def repaired(messages: Sequence[Any], where: str = "messages", own: Collection[Message] = ()) -> list[Message]:
    """A valid history made of copies of the messages; those in `own` are known to be messages and stay themselves.

    Neighbours of one role are merged, orphan tool results dropped, missing ones added as errors next to their call,
    repeated or illegal ids replaced, with their results. Uses in the last message stay open. A leading assistant stays.

    Raises:
        HistoryError: An entry is no message.
    """
    builder = _Builder()
    known = {id(message) for message in own}
    for index, value in enumerate(messages):
        builder.add(value if id(value) in known else checked_message(value, f"{where}[{index}]"))

    return builder.out


class _Builder:
    """Takes messages one by one and keeps what it has so far valid, open uses at the tail excepted."""

    __slots__ = ("_open", "_seen", "out")

    def __init__(self) -> None:
        self.out: list[Message] = []
        self._seen: set[str] = set()
        self._open: dict[str, ToolUse] = {}  # id as it came -> the use as it stands

    def add(self, message: Message) -> None:
        if message["role"] == "assistant":
            self._add_assistant(message)
        else:
            self._add_user(message)

    def _add_assistant(self, message: Message) -> None:
        if self._open:
            self._push_user(closing_results(list(self._open.values()), OUTCOME_UNKNOWN))

        self._open = {}
        blocks: list[ContentBlock] = [self._unique(b) for b in message["content"] if "toolResult" not in b]
        if self.out and self.out[-1]["role"] == "assistant":
            self.out[-1] = joined(self.out[-1], message, blocks)
        else:
            self.out.append(_with(message, blocks))

    def _unique(self, block: ContentBlock) -> ContentBlock:
        use = block.get("toolUse")
        if use is None:
            return block

        given = use["toolUseId"]
        if not is_legal_id(given) or given in self._seen:
            use = {**use, "toolUseId": current_seam().new_id("tooluse_")}
            block = {"toolUse": use}

        self._seen.add(use["toolUseId"])
        # a second use of the same id takes the next result of that id: keep both under keys of their own
        self._open[given if given not in self._open else use["toolUseId"]] = use
        return block

    def _add_user(self, message: Message) -> None:
        answers: dict[str, ContentBlock] = {}
        others: list[ContentBlock] = []
        waiting = dict(self._open)
        for block in message["content"]:
            result = block.get("toolResult")
            if result is None:
                others.append(block)
                continue

            use = waiting.pop(result["toolUseId"], None) or self._twin(waiting, result["toolUseId"], answers)
            if use is not None:
                same = result["toolUseId"] == use["toolUseId"]
                answers[use["toolUseId"]] = block if same else {"toolResult": {**result, "toolUseId": use["toolUseId"]}}

        results = [
            answers.get(use["toolUseId"]) or closing_results([use], OUTCOME_UNKNOWN)[0] for use in self._open.values()
        ]
        self._open = {}
        self._push_user([*results, *others], message)

    def _twin(self, waiting: dict[str, ToolUse], given: str, answers: dict[str, ContentBlock]) -> ToolUse | None:
        """The use whose id was replaced because it repeated `given`, if a result of `given` was already taken."""
        renamed = [key for key, use in waiting.items() if key == use["toolUseId"]] if given in answers else []
        return waiting.pop(renamed[0]) if renamed else None

    def _push_user(self, blocks: list[ContentBlock], message: Message | None = None) -> None:
        if not blocks and message is not None and message["content"]:
            return  # it held nothing but orphan results

        if self.out and self.out[-1]["role"] == "user":
            self.out[-1] = joined(self.out[-1], message, blocks)
        elif message is not None:
            self.out.append(_with(message, blocks))
        else:
            self.out.append({"role": "user", "content": blocks})


def joined(one: Message, other: Message | None, blocks: Sequence[ContentBlock]) -> Message:
    """A message with the other one's blocks behind its own; a pin on either stays, and other marks.

    Args:
        one: The message.
        other: The one whose marks it takes where it has none; None when there is no such message.
        blocks: What it gets of the other one's content.
    """
    content = results_first([*one["content"], *blocks])
    mine, others = one.get("metadata"), None if other is None else other.get("metadata")
    if not isinstance(others, Mapping) or not others:
        return {**one, "content": content}

    mine = mine if isinstance(mine, Mapping) else {}
    custom = [each["custom"] for each in (others, mine) if isinstance(each.get("custom"), Mapping)]
    metadata = {**others, **mine}
    if custom:
        metadata["custom"] = {key: value for each in custom for key, value in each.items()}
        if any(each.get("pinned") for each in custom):
            metadata["custom"]["pinned"] = True

    return {**one, "content": content, "metadata": metadata}


def _with(message: Message, blocks: list[ContentBlock]) -> Message:
    """The message with these blocks; the same object when they are its own."""
    content = message["content"]
    same = len(content) == len(blocks) and all(a is b for a, b in zip(content, blocks, strict=True))
    return message if same else {**message, "content": blocks}
