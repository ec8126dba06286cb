"""What one run of an agent knows about the models that it has tried."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from ropewalk.errors import IncompleteStreamError, MalformedStreamError
from ropewalk.kits.json_values import text_of
from ropewalk_fallback.kinds import is_among, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropewalk.agent import Agent
    from ropewalk_fallback.model import FallbackModel

_OF_THE_STREAM: Final = (IncompleteStreamError, MalformedStreamError)  # the kernel's, of what a model has streamed

logger = logging.getLogger("ropewalk.fallback")


class FallbackRun:
    """The state of one run: which model's turn it is, and how it came to that.

    Attributes:
        model: Its models.
        index: The model that is asked next.
        switches: From which model to which, and why, as JSON.
        answers: How many answers each model gave, by its id.
        last: The id of the model that gave the last one.
    """

    __slots__ = ("_agent", "_ended", "_failed", "answers", "index", "last", "model", "switches")

    def __init__(self, agent: Agent, model: FallbackModel) -> None:
        self._agent = ref(agent)  # a timer that was stopped keeps its context, and all in it, until its time
        self.model = model
        self.index = 0
        self.switches: list[dict[str, Any]] = []
        self.answers: dict[str, int] = {}
        self.last: str | None = None
        self._failed: int | None = None
        self._ended = False

    def take_up(self, known: Mapping[str, Any]) -> None:
        """Goes on where the run was when it paused: what `to_dict` said then."""
        self.last, self.answers, self.switches = known["model"], dict(known["answers"]), list(known["switches"])
        names = [self.model.name_of(index, self.agent) for index in range(len(self.model.models))]
        for switch in self.switches:
            following = *range(self.index + 1, len(names)), *range(1, self.index + 1)  # the latter after a new start
            self.index = next((index for index in following if names[index] == switch["to"]), 0)

        if self.last is not None and self.last == names[0] != names[self.index]:
            self.index = 0  # after all had failed, the first choice was back

    @property
    def agent(self) -> Agent | None:
        """Whose run it is, as long as it is there."""
        return self._agent()

    def begin(self) -> None:
        """An attempt begins."""
        self._failed = None
        self._ended = False

    def failed_with(self, error: Exception) -> None:
        """Notes that this error is the model's own, and no hook's. Not the error: it refers to its frames."""
        self._failed = id(error)

    def has_ended(self) -> None:
        """Notes that the model's stream has come to its end."""
        self._ended = True

    def count_answer(self) -> None:
        """Counts an answer, if it is the model's: hooks may answer in its place."""
        if not self._ended:
            return

        self.last = self.model.name_of(self.index, self.agent)
        self.answers[self.last] = self.answers.get(self.last, 0) + 1

    def switch_after(self, error: Exception) -> str | None:
        """Turns to the next model, if there is one for this failure.

        Returns:
            What happened, for followers; None when the error goes its way.
        """
        own = self._failed == id(error) or isinstance(error, _OF_THE_STREAM)
        model = self.model
        if not own or not is_among(error, model.on):
            return None

        before = model.name_of(self.index, self.agent)
        if model.max_switches is not None and len(self.switches) >= model.max_switches:
            _note(error, f"fallback: {before} failed, and max_switches={model.max_switches} is reached")
            return None

        kind = kind_of(error)
        following = model.next_after(self.index, kind, self.agent)
        if following is None:
            _note(error, _exhausted(kind, before))
            if kind != "overflow":
                self.index = 0  # if the call is repeated after a wait, the first choice may be back

            return None

        self.index = following
        after = model.name_of(following, self.agent)
        reason = text_of(error)
        self.switches.append({"from": before, "to": after, "failure": kind, "error": reason})
        logger.warning("%s failed (%s): going on with %s", before, kind or type(error).__name__, after)
        return f"{before} failed, {after} is next: {reason}"

    def to_dict(self) -> dict[str, Any]:
        """What `result.state["fallback"]` says."""
        return {"model": self.last, "answers": dict(self.answers), "switches": list(self.switches)}


def _exhausted(kind: str | None, last: str) -> str:
    if kind == "overflow":
        return f"fallback: no model after {last} is known to have a larger window: see context_window of the models"

    return f"fallback: {last} was the last model: give more, or a retry strategy that waits"


def _note(error: Exception, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):  # one error object may be raised many times
        error.add_note(note)


run_under_way: ContextVar[FallbackRun | None] = ContextVar("ropewalk_fallback_run", default=None)
"""The run that the code at hand is part of."""

attempt_under_way: ContextVar[FallbackRun | None] = ContextVar("ropewalk_fallback_attempt", default=None)
"""The same, while one of its model calls is under way; agents that its tools call have none."""
