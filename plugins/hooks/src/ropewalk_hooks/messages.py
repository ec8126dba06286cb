"""Which messages of the history nobody has been told of yet, while a run is under way."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ropewalk.kits.messages.rules import sendable
from ropewalk.types import Message

if TYPE_CHECKING:
    from ropewalk.agent import Agent


class Unseen:
    """Remembers the end of the history at the last look.

    Ids never come again, and a message that is merged into keeps its own. So what stands behind the last one seen is
    new, wherever it went meanwhile; only when a context plugin has replaced that very message does its place say
    nothing, and then the run's input is known by its number.

    Attributes:
        agent: Whose run it is.
        asking: The model's last message.
    """

    __slots__ = ("_beside", "_expected", "_id", "_last", "agent", "asking")

    def __init__(self, agent: Agent, expected: int) -> None:
        self.agent = agent
        self.asking: Message | None = None
        self._expected = expected
        self._beside = False
        self._look()

    def saw(self, message: Message) -> None:
        """The kernel has told of a message at the end of the history."""
        if message["role"] == "assistant":
            self.asking = message

        self._look()

    def take(self, request: Sequence[Message]) -> list[Message]:
        """The messages since the last look, in order.

        Args:
            request: The conversation as the model gets it; empty when there is no request.
        """
        history = self.agent.history
        expected, self._expected = self._expected, 0
        self._beside = self._beside or (bool(request) and not _ends_in(request, history.messages))
        if self._beside:  # the run has a history of its own, beside another run
            return list(request[-expected:]) if expected and request else []

        place = self._place(history.ids)
        if place is None:
            fresh = history.messages[-expected:] if expected else []
        else:
            fresh = history.messages[place + 1 :]
            last = history.messages[place] if place >= 0 else None
            if last is not None and last is not self._last and last["role"] == "user":
                fresh.insert(0, last)

        self._look()
        return fresh

    def _place(self, ids: Sequence[int]) -> int | None:
        """Where the last message seen stands now: -1 when there was none, None when it is gone."""
        if self._id is None:
            return -1

        return next((place for place in range(len(ids) - 1, -1, -1) if ids[place] == self._id), None)

    def _look(self) -> None:
        history = self.agent.history
        self._id = history.ids[-1] if history.ids else None
        self._last = history.messages[-1] if history.ids else None


def _ends_in(request: Sequence[Message], messages: Sequence[Message]) -> bool:
    last = messages[-1] if messages else None
    return last is not None and (request[-1] is last or request[-1] == sendable(last))


_current: ContextVar[Unseen | None] = ContextVar("ropewalk_unseen_messages", default=None)


class Following:
    """Keeps the messages of one run in view, for the length of a `with` block."""

    __slots__ = ("_token", "unseen")

    def __init__(self, agent: Agent, expected: int) -> None:
        self.unseen = Unseen(agent, expected)

    def __enter__(self) -> Unseen:
        self._token = _current.set(self.unseen)
        return self.unseen

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def unseen_of(agent: Agent) -> Unseen | None:
    """What the run under way knows; None outside of one, or when it began before there was any callback."""
    unseen = _current.get()
    return unseen if unseen is not None and unseen.agent is agent else None
