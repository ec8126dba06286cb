"""The rule for valid histories, as a check for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def assert_valid_history(messages: Sequence[Any], *, open_tail: bool = False) -> None:
    """Checks that a provider would take the conversation.

    A valid history starts with a user turn; every assistant turn with tool uses is followed at once by a user turn that
    holds exactly one result per use; no tool-use id is used twice; never two turns of one role in a row.

    Args:
        messages: The conversation. An empty one is valid.
        open_tail: Whether the last message may be an assistant turn whose tool uses have no results yet.

    Raises:
        AssertionError: It is not valid. The message lists every fault and outlines the conversation.
    """
    __tracebackhide__ = True
    faults = list(_faults(messages, open_tail))
    if faults:
        outline = "\n".join(f"  {i:>3} {_outline(message)}" for i, message in enumerate(messages))
        raise AssertionError(
            "this history is not valid:\n" + "\n".join(f"- {fault}" for fault in faults) + f"\nThe history:\n{outline}"
        )


def _faults(messages: Sequence[Any], open_tail: bool) -> Iterator[str]:
    seen: dict[str, int] = {}
    previous: Any = None
    for i, message in enumerate(messages):
        if message["role"] not in ("user", "assistant"):
            yield f"message {i} has the role {message['role']!r}: a role is 'user' or 'assistant'"
        if previous is None and message["role"] != "user":
            yield f"message 0 is of the {message['role']}: a history starts with a user turn"
        if previous is not None and previous["role"] == message["role"]:
            yield f"messages {i - 1} and {i} are both of the {message['role']}: turns must alternate"

        yield from _result_faults(i, message, previous)
        for use_id in _use_ids(message):
            if use_id in seen:
                yield f"message {i} uses the tool-use id {use_id!r} again (first used in message {seen[use_id]})"

            seen.setdefault(use_id, i)

        if message["role"] == "user" and _use_ids(message):
            yield f"message {i} is of the user and holds a toolUse block"

        previous = message

    if previous is not None and not open_tail:
        for use_id in _use_ids(previous):
            yield f"tool use {use_id!r} of the last message has no result"


def _result_faults(i: int, message: Any, previous: Any) -> Iterator[str]:
    """The results in message `i` against the uses in the message before it."""
    uses = _use_ids(previous) if previous is not None else []
    results = _result_ids(message) if message["role"] == "user" else []
    if message["role"] != "user" and _result_ids(message):
        yield f"message {i} is of the assistant and holds a toolResult block"

    for use_id in dict.fromkeys(uses):
        count = results.count(use_id)
        if count == 0:
            yield f"tool use {use_id!r} of message {i - 1} has no result in message {i}"
        elif count > 1:
            yield f"tool use {use_id!r} of message {i - 1} has {count} results in message {i}"

    for result_id in dict.fromkeys(results):
        if result_id not in uses:
            yield f"the result for {result_id!r} in message {i} answers no tool use of the message before it"


def _use_ids(message: Any) -> list[str]:
    return [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]


def _result_ids(message: Any) -> list[str]:
    return [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]


def _outline(message: Any) -> str:
    return f"{message['role']}: " + (", ".join(_piece(block) for block in message["content"]) or "(no content)")


def _piece(block: Any) -> str:
    if "text" in block:
        shown: str = block["text"] if len(block["text"]) <= 40 else block["text"][:37] + "..."  # noqa: PLR2004 - one line
        return repr(shown)
    if "toolUse" in block:
        return f"use {block['toolUse']['name']}({block['toolUse']['toolUseId']!r})"
    if "toolResult" in block:
        return f"result({block['toolResult']['toolUseId']!r}, {block['toolResult'].get('status')})"

    return next(iter(block), "(empty block)")
