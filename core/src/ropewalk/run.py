"""One invocation under way: its explicit state, its followers, its log."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

from ropewalk.kits.aio.cancellation import Cancellation
from ropewalk.kits.aio.channel import Channel
from ropewalk.kits.aio.followers import Followed
from ropewalk.kits.aio.locks import Lock
from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.json_values import packed, unpacked
from ropewalk.kits.log.records import Journal, Record
from ropewalk.kits.log.standing import Standing
from ropewalk.kits.messages.history import History
from ropewalk.kits.metrics import EventLoopMetrics
from ropewalk.kits.suspension import Interrupt, Suspend, Suspension, interrupt_id
from ropewalk.kits.suspension.calls import NO_CALLS
from ropewalk.tools import CancelSignal, ToolCall
from ropewalk.types import Message, ToolResult

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.invocation import CallOptions
    from ropewalk.kits.calls.outcomes import ModelOutcome, Retry, ToolsOutcome
    from ropewalk.kits.hooks.facade import Hooks
    from ropewalk.kits.log.fold import LogState
    from ropewalk.kits.result import AgentResult
    from ropewalk.kits.suspension.state import Position
    from ropewalk.model import Model, ModelRequest

under_way: ContextVar[ReferenceType[Run] | None] = ContextVar("ropewalk_run", default=None)
"""The run that the code in this context is part of; weak, for contexts outlive runs."""

inside: ContextVar[tuple[ReferenceType[Agent], Journal, str] | None] = ContextVar("ropewalk_inside", default=None)
"""A sub-agent whose runs join another run's log, that run's journal, and the tool use that it answers."""


def current_run() -> Run:
    """The run that the calling hook or tool is part of.

    Raises:
        RuntimeError: There is none.
    """
    found = under_way.get()
    run = found() if found is not None else None
    if run is None:
        raise RuntimeError("no agent runs here: call this in a hook or a tool, while its agent runs")

    return run


class Run(Followed):
    """What the loop knows about the invocation it runs.

    Attributes:
        agent: Whose run it is.
        id: Unique; with a counter it names the run's records.
        options: What the caller gave.
        invocation_state: The caller's dict, by reference.
        hooks: The hooks of the current cycle; `Agent.add_plugin` takes effect at the next one.
        history: The agent's conversation.
        cycle: Index of the current cycle, from 0.
        attempt: Number of the current attempt at a model call, from 1.
        now: Tells the seconds on the run's clock.
        metrics: Counts and durations so far.
        cancellation: The cancel state.
        journal: The run's records, or None when nobody writes them.
        contributed: Whether a message of this run's model, or of a hook in its place, is in the history.
        state: What hooks leave for the caller; becomes `result.state`.
        position: Where the run is (see `kits.suspension.state`), and goes on when it is resumed.
        calls: What is known of the open tool calls.
        resumed: The pause that the run goes on from, until it has taken it up.
        paused: The pause that ends this call of the agent, once there is one.
    """

    __slots__ = ("__weakref__", "_seam", "answered", "answers", "attempt", "batch_failure", "calls", "contributed",
        "cycle", "direct", "errors", "history", "id", "input", "interrupts", "invocation_state", "journal", "metrics",
        "model", "model_chain", "model_error", "nameless_turns", "now", "once_locks", "once_results", "options",
        "outcome", "outcome_gated", "passed_message", "paused", "position", "result", "resumed", "state", "streamed",
        "tool_chain", "tools_chain")  # fmt: skip

    def __init__(
        self,
        agent: Agent,
        options: CallOptions,
        hooks: Hooks,
        history: History,
        channel: Channel | None,
        resumed: Suspension | None = None,
    ) -> None:
        self._seam = current_seam()
        super().__init__(channel)
        self.agent = agent
        self.id = self._seam.new_id("run_") if resumed is None else resumed.run
        self.options = options
        self.invocation_state = options.invocation_state
        self.history = history
        self.cycle = -1
        self.attempt = 0
        self.now = self._seam.monotonic
        self.metrics = EventLoopMetrics(started=self.now())
        self.cancellation = Cancellation(asyncio.get_running_loop())
        self.state: dict[str, Any] = {}
        self.model: Model | None = None
        self.model_error: Exception | None = None
        self.streamed = False
        self.answered = False
        self.contributed = False
        self.nameless_turns = 0
        self.errors: dict[str, BaseException] = {}
        self.calls = NO_CALLS
        self.batch_failure: BaseException | None = None
        self.passed_message: Message | None = None
        self.journal: Journal | None = None
        self.position: Position = "input"
        self.resumed = resumed
        self.paused: Suspension | None = None
        self.input: Sequence[Message] = ()
        self.result: AgentResult | None = None
        self.direct = False
        self.interrupts: tuple[Interrupt, ...] = ()
        self.answers: dict[str, Any] = {}
        self.once_results: dict[str, Any] = {}
        self.once_locks: dict[str, Lock] = {}
        self.outcome: ModelOutcome | None = None
        self.outcome_gated = True
        self.model_chain: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]]
        self.tools_chain: Callable[[Any], Awaitable[ToolsOutcome]]
        self.tool_chain: Callable[[ToolCall], Awaitable[ToolResult]]
        self.use_hooks(hooks)

    def forget_tools(self) -> None:
        """The tools of a message are answered for: what was kept of their calls is not needed any more."""
        self.errors, self.answers, self.calls = {}, {}, NO_CALLS

    def use_hooks(self, hooks: Hooks) -> None:
        """Takes the agent's current hooks; the chains are composed anew by the loop."""
        self.show_to(hooks)
        if self.journal is None:
            number = self.resumed.records if self.resumed is not None else 0
            nest = inside.get()
            if hooks.plan.write_records:
                log = self.agent.log = self.agent.log or Standing()
                self.journal = Journal(self.id, partial(_write, ref(self.agent)), number, queue=log.queue)
            elif nest is not None and nest[0]() is self.agent:
                self.journal = nest[1].nested(self.id, nest[2], number)

    # -- cancelling ------------------------------------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the run to stop."""
        return self.cancellation.requested

    @property
    def cancel_signal(self) -> CancelSignal:
        """Set when the run is cancelled, for code in threads."""
        return self.cancellation.signal

    async def sleep(self, seconds: float) -> None:
        """Waits, or until the run is cancelled."""
        if self.cancelled:
            return

        with self.cancellation:
            await self._seam.sleep(seconds)

    # -- for hooks and tools ---------------------------------------------------------------------------------------

    def interrupt(
        self, name: str, reason: Any = None, response: Any = None, *, where: str = "hook", of: str | None = None
    ) -> Any:
        """Asks whoever called the agent, and pauses the run until there is an answer.

        The hook or tool that asks is run again from its start when the run goes on, and gets the answer here.

        Args:
            name: Names the question; unique in its place.
            reason: What the caller is told, JSON only.
            response: An answer that is known already; nobody is asked then.
            where: The kind of place that asks.
            of: What makes the place unique in the run; default is the cycle.

        Returns:
            The answer; any JSON value, also None.

        Raises:
            Suspend: There is no answer yet. Let it pass.
            ValueError: The name is no text.
            RuntimeError: Nobody could answer: the run runs beside another one.
        """
        if not isinstance(name, str) or not name:
            raise ValueError(f"interrupt name {name!r}: give a text")

        if response is not None:
            return response

        if not self.direct and self.history is not self.agent.history:
            raise RuntimeError(f"interrupt {name!r}: nobody can answer in a run beside another one: pass response=")

        number = interrupt_id(where, name, of or f"{self.id}:{self.cycle}")
        if number in self.answers:
            return unpacked(packed(self.answers[number]))

        raise Suspend((Interrupt(number, name, packed(reason)),))

    async def once(self, key: str, act: Callable[[], Any]) -> Any:
        """Runs a side effect of a hook once per run, also when the hook is run again after a pause or a crash.

        Args:
            key: Names the effect in this run.
            act: Does it; may be async. What it returns must be JSON.

        Returns:
            What it returned, or had returned.
        """
        async with self.once_locks.setdefault(key, Lock()):  # tools that run at once may ask for the same
            if key not in self.once_results:
                value = act()
                self.once_results[key] = kept = packed(await value if inspect.isawaitable(value) else value)
                if self.journal:
                    self.journal.add("once", {"key": key, "value": kept})
                    await self.commit()

        return unpacked(self.once_results[key])

    async def ask_model(self, request: ModelRequest, purpose: str) -> ModelOutcome:
        """Calls the agent's model beside the conversation: for a summary, a classification, an extraction.

        It goes through the same hooks, gates, retries and cancel; its usage counts for the run. Nothing is streamed to
        followers and nothing enters the history.

        Args:
            request: What is asked.
            purpose: Names the call, so that hooks can tell it from a turn of the conversation.

        Raises:
            Exception: The model's error when nobody retries it; a hook's.
        """
        from ropewalk.loop.aside import ask_model  # the loop works on runs

        return await ask_model(self, request, purpose)

    @contextmanager
    def nesting(self, agent: Agent, use_id: str) -> Iterator[LogState | None]:
        """See `ToolCall.nesting`."""
        log = self.agent.log
        known = log.nested.pop(use_id, None) if log is not None else None
        if self.journal is None:
            yield known
            return

        token = inside.set((ref(agent), self.journal, use_id))
        try:
            yield known
        finally:
            inside.reset(token)

    # -- the log ---------------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Writes what was noted since the last commit. Not interruptible: a half-written log helps nobody.

        What could not be written is kept, and written before anything else the agent does.
        """
        journal = self.journal
        if journal is None or not (journal.pending or journal.writing.locked()):
            return  # a write under way may have taken what the caller has noted: it waits for that one

        with self.cancellation.sheltered():
            async with journal.writing:  # tools that run at once commit at once; a store gets records in their order
                records = journal.take()
                try:
                    if records:
                        await journal.write(records)
                except BaseException:
                    journal.put_back(records)
                    raise


async def _write(reference: Callable[[], Any], records: list[Record]) -> None:
    agent = reference()  # whoever writes holds it; what could not be written must not
    await agent.hooks.write_records(records, agent)
