"""What the model wants done with its context: noted by the tools, carried out when the tools of its turn have run.

A tool cannot change the history under its own open call. So it notes a wish in the plugin's cell, where it survives a
pause and a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from ropewalk import JSONState

_KEY: Final = "wishes"

KEEP_RECENT: Final = 10
TYPES: Final = ("all", "tool_results", "tool_result_errors", "assistant_text", "user_text")
SUMMARY_TYPES: Final = TYPES[:2]


class WishError(ValueError):
    """The model's arguments make no sense; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One change of the context.

    Attributes:
        kind: What is to be done.
        reference: Under which what is removed can be read again; None when nothing is.
        keep_recent: Messages at the end that stay.
        ratio: The share of the messages that is summarized at most; None for all but the recent ones.
        message_type: What is meant: one of `TYPES`.
        select: Which messages are pinned: `"last_turn"`, a number of messages at the end, or a list of places.
        text: Only messages that contain it are pinned.
        pin: Whether they are pinned; else unpinned.
        key: Names the tool call; one that is run again after a crash wishes nothing more.
        run: The run beside the conversation that it is about; None for the conversation itself.
    """

    kind: Literal["summarize", "truncate", "pin"]
    reference: str | None = None
    keep_recent: int = KEEP_RECENT
    ratio: float | None = None
    message_type: str = "all"
    select: str | int | list[int] = "last_turn"
    text: str | None = None
    pin: bool = True
    key: str | None = None
    run: str | None = None


def noted(state: JSONState, run: str | None = None) -> list[Wish]:
    """The wishes that wait, about the conversation or what a run beside it works on."""
    return [wish for wish in _all(state) if wish.run == run] if _KEY in state else []


def note(state: JSONState, wish: Wish) -> None:
    """Adds a wish, in the place of one of the same call."""
    others = [each for each in _all(state) if wish.key is None or each.key != wish.key]
    state.set(_KEY, [asdict(each) for each in (*others, wish)])


def forget(state: JSONState, wishes: Collection[Wish]) -> None:
    """Drops wishes: they are carried out."""
    left = [asdict(each) for each in _all(state) if each not in wishes]
    if left:
        state.set(_KEY, left)
    else:
        state.delete(_KEY)


def _all(state: JSONState) -> list[Wish]:
    return [Wish(**each) for each in state.get(_KEY, [])]


# -- from what a model gives ---------------------------------------------------------------------------------------


def summarize_wish(given: Mapping[str, Any], reference: str) -> Wish:
    """The wish of a call of `summarize_context`.

    Raises:
        WishError: The arguments are none.
    """
    ratio = given.get("summary_ratio")
    if ratio is not None and (isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1):
        raise WishError(f"summary_ratio is {ratio!r}: give a share above 0 and up to 1, or leave it out")

    return Wish(
        "summarize",
        reference,
        keep_recent=_keep_recent(given),
        ratio=None if ratio is None else float(ratio),
        message_type=_one_of(given, "message_type", SUMMARY_TYPES),
    )


def truncate_wish(given: Mapping[str, Any], reference: str) -> Wish:
    """The wish of a call of `truncate_context`.

    Raises:
        WishError: The arguments are none.
    """
    kind = _one_of(given, "message_type", TYPES)
    return Wish("truncate", reference, keep_recent=_keep_recent(given), message_type=kind)


def pin_wish(given: Mapping[str, Any]) -> Wish:
    """The wish of a call of `pin_context`.

    Raises:
        WishError: The arguments are none.
    """
    action = _one_of(given, "action", ("pin", "unpin"))
    text = given.get("filter")
    if text is not None and not isinstance(text, str):
        raise WishError(f"filter is {text!r}: give a text that the messages contain, or leave it out")

    return Wish("pin", select=_select(given.get("select", "last_turn")), text=text or None, pin=action == "pin")


def _keep_recent(given: Mapping[str, Any]) -> int:
    value = given.get("keep_recent", KEEP_RECENT)
    number = whole_number(value)
    if number is None or number < 0:
        raise WishError(f"keep_recent is {value!r}: give a number of messages, from 0 on")

    return number


def _one_of(given: Mapping[str, Any], key: str, known: tuple[str, ...]) -> str:
    value = given.get(key) or known[0]
    if value not in known:
        raise WishError(f"{key} is {value!r}: give one of {', '.join(known)}")

    return str(value)


def _select(value: Any) -> str | int | list[int]:
    number = whole_number(value)
    if value == "last_turn" or (number is not None and number > 0):
        return value if number is None else number

    if isinstance(value, list) and value:
        places = [whole_number(each) for each in value]
        if all(place is not None and place >= 0 for place in places):
            return [place for place in places if place is not None]

    raise WishError(
        f'select={value!r} is wrong: give "last_turn", a number of messages at the end, or a list of places from 0'
    )


def whole_number(value: Any) -> int | None:
    """A whole number, also one that a small model has written as text."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)

    return value if isinstance(value, int) and not isinstance(value, bool) else None
