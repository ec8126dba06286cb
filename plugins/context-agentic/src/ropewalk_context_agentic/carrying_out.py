"""Carries out a wish on a list of messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from ropewalk import HistoryEdit
from ropewalk.kits.context import is_pinned, newest_turn, pinned_as, pinned_places
from ropewalk.kits.context.folding import Folding, best_cut, first_words, fold, unfolded
from ropewalk.kits.context.keeping import has_results, has_uses, with_pairs
from ropewalk.kits.context.transcript import transcript
from ropewalk.kits.messages.estimate import block_tokens
from ropewalk.types import Message
from ropewalk_context_agentic.wishes import Wish, WishError

_SHORT: Final = 60
"""Tokens up to which a block is left alone: a note in its place would be no shorter."""

Summarize = Callable[[Folding], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of the messages.

    Attributes:
        messages: The messages now; those that did not change are the same objects.
        removed: What was taken out, as text; empty when nothing was.
    """

    messages: list[Message]
    removed: str = ""


async def carried_out(wish: Wish, messages: list[Message], summarize: Summarize) -> Change:
    """The messages as they are wished.

    Raises:
        WishError: Nothing of what is wished can be done; the text is for the model.
        Exception: What the summarizer raised.
    """
    if wish.kind == "pin":
        return Change(_pinned(wish, messages))

    if wish.kind == "truncate" and wish.message_type != "all":
        return _blanked(wish, messages)

    folding = _folding(wish, messages)
    removed = "\n\n".join(filter(None, (folding.earlier, transcript(folding.material))))
    if wish.kind == "summarize":
        text = await summarize(folding)
        note = f'\n\n(Word for word: retrieve_context with reference "{wish.reference}")'
    else:
        text = folding.earlier or ""
        note = (
            f"\n\n({len(folding.material)} messages were removed here. "
            f'They can be read again: retrieve_context with reference "{wish.reference}")'
        )

    return Change([*folding.with_summary((text + note).strip()), *messages[folding.end :]], removed)


def edits_between(
    ids: Sequence[int], before: Sequence[Message], after: Sequence[Message], reason: str
) -> list[HistoryEdit]:
    """One edit that makes the one list the other; none when they are the same."""
    start, most = 0, min(len(before), len(after))
    while start < most and before[start] is after[start]:
        start += 1

    end = 0
    while end < most - start and before[-1 - end] is after[-1 - end]:
        end += 1

    if start == len(before) == len(after):
        return []

    if start == len(before) - end:  # nothing goes: an edit needs a message to hold on to
        start -= 1 if start else 0
        end -= 1 if start == len(before) - end else 0

    last = len(before) - end
    return [HistoryEdit(ids[start], ids[last - 1], tuple(after[start : len(after) - end]), reason)]


# -- summaries, and dropping whole turns ---------------------------------------------------------------------------


def _kept(messages: list[Message]) -> set[int]:
    task = first_words(messages)
    return pinned_places(messages) | newest_turn(messages) | (set() if task is None else {task})


def _end(messages: list[Message]) -> int:
    """How many messages there are without the turn in which the model asks for this."""
    return len(messages) - 2 if len(messages) > 1 and has_results(messages[-1]) else len(messages)


def _folding(wish: Wish, messages: list[Message]) -> Folding:
    size = len(messages)
    most = _end(messages) - wish.keep_recent
    if wish.ratio is not None:
        most = min(most, max(1, int(size * wish.ratio)))

    kept = _kept(messages)
    front = 0
    while front < size and is_pinned(messages[front]):
        front += 1

    if wish.message_type == "tool_results":
        kept |= {place for place, message in enumerate(messages) if not (has_uses(message) or has_results(message))}

    cut = best_cut(messages, most, most) if most > 0 else 0
    folding = fold(messages, cut, with_pairs(messages, kept), front) if cut else None
    if folding is None:
        raise WishError(
            f"there is nothing to {wish.kind}: the conversation has {size} messages, and the newest {wish.keep_recent} "
            "and the pinned ones stay; use a smaller keep_recent"
        )

    return folding


# -- blocks of one kind --------------------------------------------------------------------------------------------


def _blanked(wish: Wish, messages: list[Message]) -> Change:
    kept = _kept(messages)
    out, removed = list(messages), []
    for place, message in enumerate(messages[: max(_end(messages) - wish.keep_recent, 0)]):
        summary, _ = unfolded(message)
        if place in kept or summary is not None:
            continue

        content = []
        for block in message["content"]:
            short = _blank(cast("dict[str, Any]", block), message, wish)
            content.append(block if short is None else short)
            if short is not None:
                removed.append({**message, "content": [block]})

        if any(new is not old for new, old in zip(content, message["content"], strict=True)):
            out[place] = cast("Message", {**message, "content": content})

    if not removed:
        raise WishError(f"there is nothing to truncate: no {wish.message_type} over {_SHORT} tokens is that old")

    return Change(out, transcript(cast("list[Message]", removed)))


def _blank(block: dict[str, Any], message: Message, wish: Wish) -> Any:
    """What stands in a block's place; None when it stays."""
    size = block_tokens(block)
    if size <= _SHORT:
        return None

    note = {"text": f'[removed: about {size} tokens; retrieve_context with reference "{wish.reference}"]'}
    kind, result = wish.message_type, block.get("toolResult")
    if result is not None:
        failed = result.get("status") == "error"
        wanted = kind == "tool_results" or (kind == "tool_result_errors" and failed)
        return {"toolResult": {**result, "content": [note]}} if wanted else None

    return note if "text" in block and kind == f"{message['role']}_text" else None


# -- pins ----------------------------------------------------------------------------------------------------------


def _pinned(wish: Wish, messages: list[Message]) -> list[Message]:
    chosen = [
        place for place in _selected(wish, messages) if wish.text is None or _contains(messages[place], wish.text)
    ]
    if not chosen:
        raise WishError("no message is selected: use another select or filter")

    out = list(messages)
    for place in with_pairs(messages, chosen):
        if is_pinned(out[place]) != wish.pin:
            out[place] = pinned_as(out[place], wish.pin)

    return out


def _selected(wish: Wish, messages: list[Message]) -> list[int]:
    end = _end(messages)
    if isinstance(wish.select, list):
        return [place for place in wish.select if place < end]

    if isinstance(wish.select, int):
        return list(range(max(end - wish.select, 0), end))

    start = end - 1
    while start > 0 and (messages[start]["role"] != "user" or has_results(messages[start])):
        start -= 1

    return list(range(max(start, 0), end))


def _contains(message: Message, text: str) -> bool:
    return text.casefold() in transcript([message]).casefold()
