"""Edits of the history, proposed by plugins and carried out by the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from ropewalk.types import Message

ContextReason: TypeAlias = Literal["before_model", "overflow", "after_tools", "after_invocation"]
CONTEXT_REASONS: Final[frozenset[str]] = frozenset(get_args(ContextReason))


@dataclass(frozen=True, slots=True)
class HistoryEdit:
    """One splice: the messages from `first` to `last` (both included) become `messages`.

    Attributes:
        first: Id of the first message to go.
        last: Id of the last message to go; the same as `first` for one message.
        messages: What stands there instead; empty to drop.
        reason: Why, for the log and for `ropewalk trace`.
    """

    first: int
    last: int
    messages: tuple[Message, ...] = ()
    reason: str = ""


@dataclass(slots=True)
class ContextRequest:
    """What a context plugin decides on.

    Attributes:
        messages: The conversation. What a plugin does to it in place counts as its edit.
        ids: The id of each message, for edits; same length and order.
        count: Counts the tokens of the next request; use `tokens`.
        window: The model's context window in tokens, or None when it is not known.
        error: The overflow that the provider reported, when the reason is `"overflow"`.
    """

    messages: Sequence[Message]
    ids: Sequence[int]
    count: Callable[[], int]
    window: int | None = None
    error: Exception | None = None

    @property
    def tokens(self) -> int:
        """Tokens of the next request: what the model counted last, and an estimate of what is new."""
        return self.count()
