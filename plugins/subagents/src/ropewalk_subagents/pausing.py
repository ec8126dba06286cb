"""A sub-agent that waits for an answer: its questions become its caller's, and the caller keeps its state."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final
from urllib.parse import quote
from weakref import ReferenceType, WeakKeyDictionary

from ropewalk import RopewalkError, current_run
from ropewalk.kits.json_values import unpacked
from ropewalk.kits.snapshot import Snapshot
from ropewalk.kits.suspension import Interrupt, Suspend, Suspension
from ropewalk_subagents.nesting import outermost_of

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.run import Run
    from ropewalk.tools import ToolCall


_PATIENCE: Final = 100


class _Asker(NamedTuple):
    """For whom an agent that keeps its conversation has asked: the agent above all and its tool use, and the call."""

    outermost: ReferenceType[Agent]
    outer_use: str
    run: str | None
    use: str
    prefix: str


_askers: Final[WeakKeyDictionary[Agent, _Asker]] = WeakKeyDictionary()


class MovedOnError(RopewalkError):
    """An agent that keeps its conversation does not wait any more for the answer that has come."""


def suspend_of(child: Agent, call: ToolCall) -> Suspend:
    """What pauses the caller's call: the child's questions under ids of the call, and the child's state.

    Raises:
        RuntimeError: Nobody could answer: the call is of a run beside another one.
    """
    pause = child.suspension
    if pause is None:
        raise RuntimeError(f"agent {child.name!r} ended with an interrupt and does not wait: report it")

    try:
        call.interrupt(f"of agent {child.name}", where="agent_as_tool")  # the kernel knows whether somebody can answer
    except Suspend:
        run = _run_under_way()
        number, use_id = run.id if run is not None else None, call.tool_use["toolUseId"]
        _askers[child] = _Asker(*outermost_of(call), number, use_id, _prefix(call))

    snapshot = child.take_snapshot(preset="session", exclude=["suspension"])
    return Kept(call, pause, snapshot).suspend()


def kept_of(call: ToolCall) -> Kept | None:
    """What the call has kept of its sub-agent; None when it begins, also when it begins again at a hook's wish."""
    memo = unpacked(call.memo)
    if not memo or memo["attempt"] != call.attempt:
        return None

    return Kept(call, Suspension.from_dict(memo["pause"]), Snapshot.from_dict(memo["snapshot"]))


@final
class Kept:
    """What a call keeps of its sub-agent while it is paused.

    Attributes:
        pause: Where the sub-agent waits.
        answers: The prompt with the answers that have come; empty when there are none yet.
    """

    __slots__ = ("_attempt", "_prefix", "_snapshot", "answers", "pause")

    def __init__(self, call: ToolCall, pause: Suspension, snapshot: Snapshot) -> None:
        self._attempt = call.attempt
        self._prefix = _prefix(call)
        self._snapshot = snapshot
        self.pause = pause
        self.answers = _answers(call, pause)

    def suspend(self) -> Suspend:
        """What pauses the call."""
        asked = [Interrupt(self._prefix + each.id, each.name, each.reason) for each in self.pause.interrupts]
        memo = {"attempt": self._attempt, "pause": self.pause.to_dict(), "snapshot": self._snapshot.to_dict()}
        return Suspend(asked, memo)

    def into(self, child: Agent) -> None:
        """Brings an agent to where the sub-agent was paused, unless it is there.

        Raises:
            MovedOnError: It has gone on in the meantime.
            ResumeError: The state is of another version.
        """
        own = child.suspension
        if own is not None and own.to_dict() == self.pause.to_dict():
            return

        messages = unpacked(self._snapshot.data["messages"])
        if own is not None or messages[: len(child.messages)] != list(child.messages):
            raise MovedOnError("it was called, or its messages were changed, while it waited; ask it again")

        child.load_snapshot(self._snapshot)
        child.suspension = self.pause


def answers_to(child: Agent, call: ToolCall) -> list[Any]:
    """The answers that have come to what an agent has asked for the call; empty when there are none yet."""
    return [] if child.suspension is None else _answers(call, child.suspension)


def waits(child: Agent) -> bool:
    """Whether an agent that keeps its conversation waits for an answer to an earlier call.

    When nobody can bring that answer any more, the earlier call was given up, and the agent is freed.

    Raises:
        Suspend: The earlier call is of the same message as this one, which waits with it.
    """
    pause = child.suspension
    if pause is None or pause.kind != "interrupt":
        return False

    asker = _askers.get(child)
    if asker is None:
        return True  # for whoever has called it directly

    caller = asker.outermost()
    if caller is None or asker.outer_use not in caller.history.open_uses:
        child.suspension = None
        return False

    if _asks_now(asker, pause):
        raise Suspend(())

    return True


def _answers(call: ToolCall, pause: Suspension) -> list[Any]:
    prefix = _prefix(call)
    return [
        {"interruptResponse": {"interruptId": each.id, "response": unpacked(call.answers[prefix + each.id])}}
        for each in pause.interrupts
        if prefix + each.id in call.answers
    ]


def _asks_now(asker: _Asker, pause: Suspension) -> bool:
    """Whether the earlier call is one of the run under way, and has asked there or will when it is its turn again."""
    run = _run_under_way()
    if run is None or run.id != asker.run:
        return False

    if any(use["toolUseId"] == asker.use for use, _ in run.calls.waiting):
        return True

    return _is_open(asker, run) and not _is_answered(asker, run, pause)


def _is_open(asker: _Asker, run: Run) -> bool:
    return asker.use in run.history.open_uses and asker.use not in run.calls.finished


def _is_answered(asker: _Asker, run: Run, pause: Suspension) -> bool:
    return any(asker.prefix + each.id in run.answers for each in pause.interrupts)


async def let_first(child: Agent, call: ToolCall) -> None:
    """Lets an earlier call of the same message go first whose answers have come with this call's.

    Only a few turns of the event loop: calls that run one after the other never come to it.
    """
    asker, run = _askers.get(child), _run_under_way()
    if asker is None or run is None or run.id != asker.run or asker.use == call.tool_use["toolUseId"]:
        return

    for _ in range(_PATIENCE):
        pause = child.suspension
        if pause is None or not _is_open(asker, run) or not _is_answered(asker, run, pause):
            return

        await asyncio.sleep(0)


def _run_under_way() -> Run | None:
    try:
        return current_run()
    except RuntimeError:  # a direct call
        return None


def _prefix(call: ToolCall) -> str:
    """What ids of a sub-agent begin with for its caller: an answer to one call is none to another."""
    again = f"#{call.attempt}" if call.attempt > 1 else ""
    return f"v1:agent_as_tool:{quote(call.tool_use['toolUseId'], safe='')}{again}:"
