"""Which tool call a piece of a stream belongs to.

Gateways repeat index 0, leave indices and ids out, or repeat id and name in every piece. So: a known id wins over the
index; a new id never merges into another call; a piece with neither goes to the call being streamed; an id that is
missing is made once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from ropewalk.kits.aio.seam import current_seam
from ropewalk_litellm.signatures import parted

NO_INDEX: Final = -1
"""Stands for an index that was left out."""


class Call:
    """One tool call as far as it came. `announced` is whether its start was handed on."""

    __slots__ = ("announced", "block", "given_id", "index", "name", "pieces", "signature", "use_id", "waiting")

    def __init__(self, block: int, index: int, given_id: str) -> None:
        self.block = block
        self.index = index
        self.given_id = given_id
        own_id, self.signature = parted(given_id)
        self.use_id = own_id or current_seam().new_id("tooluse_")
        self.name = ""
        self.pieces: list[str] = []
        self.waiting: list[str] = []
        self.announced = False

    def add(self, arguments: str) -> None:
        """Takes a piece of the arguments."""
        if arguments:
            self.pieces.append(arguments)
            self.waiting.append(arguments)

    def take(self) -> list[str]:
        """The pieces that were not handed on yet."""
        taken, self.waiting = self.waiting, []
        return taken

    @property
    def complete(self) -> bool:
        """Whether the arguments are a whole JSON object already."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False  # asked with each piece: long arguments are not read again for every one

        try:
            json.loads("".join(self.pieces))
        except ValueError:
            return False

        return True


class Calls:
    """All tool calls of an answer."""

    __slots__ = ("_by_id", "_by_index", "_current", "_order")

    def __init__(self) -> None:
        self._order: list[Call] = []
        self._by_id: dict[str, Call] = {}
        self._by_index: dict[int, Call] = {}
        self._current: Call | None = None

    def __iter__(self) -> Iterator[Call]:
        return iter(self._order)

    def find(self, index: int, given_id: str, name: str) -> Call | None:
        """The call that a piece continues; None when it begins another."""
        if not given_id:
            call = self._without_id(index, name)
        elif given_id in self._by_id:
            call = self._with_id(index, given_id, name)
        else:
            call = self._late_id(index, given_id, name)

        if call is not None:
            self._current = call

        return call

    def open(self, index: int, given_id: str, block: int) -> Call:
        """A new call; it takes over its index."""
        call = Call(block, index, given_id)
        self._order.append(call)
        self._current = call
        if given_id:
            self._by_id[given_id] = call

        if index != NO_INDEX:
            self._by_index[index] = call

        return call

    def _with_id(self, index: int, given_id: str, name: str) -> Call | None:
        """The call of this id; None for the head of another call that was given the same id."""
        here = self._by_index.get(index)
        call = here if here is not None and here.given_id == given_id else self._by_id[given_id]
        if not name or not call.name:
            return call

        elsewhere = NO_INDEX not in (index, call.index) and index != call.index
        return None if name != call.name or (elsewhere and call.complete) else call

    def _without_id(self, index: int, name: str) -> Call | None:
        call = self._by_index.get(index) if index != NO_INDEX else self._current
        if not name:
            return call or self._current

        # a name with no id: the head of another call, unless it is what a call still lacks or just says again
        if call is None or (call.name and (call.name != name or call.complete)):
            return None

        return call

    def _late_id(self, index: int, given_id: str, name: str) -> Call | None:
        """The call at this index whose head had no id, when the piece with the id brings no name of its own."""
        call = self._by_index.get(index) if index != NO_INDEX else self._current
        if call is None or call.given_id or name:
            return None

        call.given_id = given_id
        self._by_id[given_id] = call
        return call
