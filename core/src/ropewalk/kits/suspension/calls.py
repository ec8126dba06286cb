"""What is known of the tool calls of one message, until they are answered for."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ropewalk.kits.suspension.interrupts import Interrupt
from ropewalk.kits.suspension.state import Effect
from ropewalk.types import ToolResult, ToolUse


class CallsUnderWay:
    """The tool calls of one model message. All but `waiting` is by tool-use id.

    Attributes:
        started: The attempt that was started last.
        finished: Results of the calls that are done, since the run went on.
        kept: Results of those that were done before a pause: they are not run again.
        passed: Results as they passed the output gate, to tell what hooks changed afterwards.
        effects: What the tool came to, one entry an attempt; also of calls whose hooks have not finished.
        logged: Results that the log has with their tools.
        unknown: Calls that were started and never seen to end, with the attempt.
        memos: What paused calls keep.
        waiting: The calls that wait for answers.
    """

    __slots__ = ("effects", "finished", "kept", "logged", "memos", "passed", "started", "unknown", "waiting")

    def __init__(self) -> None:
        self.started: dict[str, int] = {}
        self.finished: dict[str, ToolResult] = {}
        self.kept: dict[str, ToolResult] = {}
        self.passed: dict[str, ToolResult] = {}
        self.effects: dict[str, list[Effect]] = {}
        self.logged: dict[str, ToolResult] = {}
        self.unknown: dict[str, int] = {}
        self.memos: dict[str, object] = {}
        self.waiting: list[tuple[ToolUse, tuple[Interrupt, ...]]] = []

    def begun(self, *, resumed: bool) -> CallsUnderWay:
        """What is known when the calls are run: nothing or, `resumed`, what was known before a pause."""
        if not resumed or self is NO_CALLS:
            return CallsUnderWay()

        self.started, self.finished, self.waiting = {}, dict(self.kept), []
        return self

    def known(self, use_id: str) -> ToolResult | None:
        """What came of a call, as far as it came; nothing that an output gate has not judged to its end."""
        done = self.finished.get(use_id) or self.kept.get(use_id)
        if done is None:
            passed = [effect.result for effect in self.effects.get(use_id, ()) if effect.gated]
            done = passed[-1] if passed else None

        return done

    def was_started(self, use_id: str) -> bool:
        """Whether the tool of a call was ever started, also before a pause or a crash."""
        return use_id in self.started or use_id in self.unknown or bool(self.effects.get(use_id))


NO_CALLS: Final = CallsUnderWay()
"""Stands where no calls are under way, and cannot be written to: see `begun`."""
for _name in CallsUnderWay.__slots__:
    setattr(NO_CALLS, _name, MappingProxyType({}))
