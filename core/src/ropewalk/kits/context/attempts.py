"""What the history was before a turn that does not fit, so that a turn that never fits does no harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final
from weakref import WeakKeyDictionary

from ropewalk.types import Message


@dataclass(slots=True)
class Overflow:
    """A model turn that did not fit.

    Attributes:
        messages: The history when it did not fit for the first time.
        cycle: Which turn of its run it is.
        number: How often it has not fitted.
    """

    messages: tuple[Message, ...]
    cycle: int = 0
    number: int = 0


@final
class Attempts:
    """Counts the overflows of each turn under way and keeps the history that the first one met.

    Nothing of it outlives the turn: it is no state of an agent, and is gone with the run.
    """

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[object, Overflow] = WeakKeyDictionary()

    def __len__(self) -> int:
        """How many turns do not fit at the moment."""
        return len(self._turns)

    def note(self, run: object, messages: Sequence[Message], cycle: int = 0) -> Overflow:
        """Counts one more overflow of the run's turn in that cycle."""
        turn = self._turns.get(run)
        if turn is None or turn.cycle != cycle:
            turn = self._turns[run] = Overflow(tuple(messages), cycle)

        turn.number += 1
        return turn

    def forget(self, run: object) -> Overflow | None:
        """The turn is over: it fits now, or was given up. Costs nothing when there was no overflow."""
        return self._turns.pop(run, None) if len(self._turns) else None
