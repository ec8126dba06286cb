"""One invocation under way: its explicit state, its followers, its log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ropewalk.history import History
from ropewalk.kits.aio.cancellation import Cancellation
from ropewalk.kits.aio.channel import Channel, Streamed
from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.events import Event, ToolStreamed, delta_of
from ropewalk.kits.metrics import EventLoopMetrics
from ropewalk.kits.records import Journal
from ropewalk.tools import CancelSignal, ToolCall
from ropewalk.types import Message, ToolResult, ToolUse

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.invocation import CallOptions
    from ropewalk.kits.hooks.facade import Hooks
    from ropewalk.model import Model, ModelRequest
    from ropewalk.outcomes import ModelOutcome, Retry, ToolsOutcome


class Run:
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
    """

    __slots__ = (
        "_channel",
        "_follow_deltas",
        "_follow_events",
        "_follower_error",
        "_held",
        "_held_of",
        "_seam",
        "agent",
        "answered",
        "attempt",
        "batch_failure",
        "cancellation",
        "contributed",
        "cycle",
        "delta_error",
        "errors",
        "finished",
        "history",
        "hooks",
        "id",
        "invocation_state",
        "journal",
        "metrics",
        "model",
        "model_chain",
        "model_error",
        "nameless_turns",
        "now",
        "options",
        "passed_message",
        "passed_results",
        "started",
        "state",
        "streamed",
        "tool_chain",
        "tools_chain",
    )

    def __init__(
        self, agent: Agent, options: CallOptions, hooks: Hooks, history: History, channel: Channel | None
    ) -> None:
        self._seam = current_seam()
        self._channel = channel
        self._follower_error: Exception | None = None
        self._held: list[Streamed] | None = None
        self._held_of: dict[str, list[Event]] = {}
        self.agent = agent
        self.id = self._seam.new_id("run_")
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
        self.delta_error: Exception | None = None
        self.streamed = False
        self.answered = False
        self.contributed = False
        self.nameless_turns = 0
        self.started: dict[str, int] = {}
        self.errors: dict[str, BaseException] = {}
        self.finished: dict[str, ToolResult] = {}
        self.batch_failure: BaseException | None = None
        self.passed_message: Message | None = None
        self.passed_results: dict[str, ToolResult] = {}
        self.journal: Journal | None = None
        self.model_chain: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]]
        self.tools_chain: Callable[[Any], Awaitable[ToolsOutcome]]
        self.tool_chain: Callable[[ToolCall], Awaitable[ToolResult]]
        self.use_hooks(hooks)

    def use_hooks(self, hooks: Hooks) -> None:
        """Takes the agent's current hooks; the chains are composed anew by the loop."""
        self.hooks = hooks
        plan = hooks.plan
        self._follow_events = self._channel is not None or bool(plan.on_event)
        self._follow_deltas = self._channel is not None or bool(plan.on_delta)
        self._held = [] if plan.intervene and any(map(_holds_output, hooks.plugins)) else None
        if plan.write_records and self.journal is None:
            self.journal = Journal(self.id)

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

        try:
            await self._seam.sleep(seconds)
        except asyncio.CancelledError:
            if not self.cancellation.claim():
                raise

    # -- followers -------------------------------------------------------------------------------------------------

    @property
    def followed(self) -> bool:
        """Whether anybody looks at boundaries; when not, no event need be built."""
        return self._follow_events

    def follower(self) -> Callable[[Streamed], bool] | None:
        """Where streamed pieces go, or None when nobody looks; it answers True when the consumer must catch up."""
        if not self._follow_deltas:
            return None

        return self._follower() if self._held is None else self._hold

    def _follower(self) -> Callable[[Streamed], bool]:
        channel = self._channel
        return channel.push if channel is not None and not self.hooks.plan.on_delta else self._push_delta

    def _hold(self, event: Streamed) -> bool:
        """Keeps a piece back until the output gate has passed, as a policy with `holds_output` demands."""
        if self._held is not None:
            self._held.append(event)

        return False

    def drop_held(self) -> None:
        """Forgets what was held back of an attempt that failed."""
        if self._held:
            self._held = []

    async def release_held(self, instead: Message | None) -> None:
        """Shows what was held back of an answer, or the texts of the message that took its place."""
        if self._held is None or not self._follow_deltas:
            return

        held, self._held = self._held, []
        show = self._follower()
        for event in held if instead is None else _as_deltas(instead):
            if show(event):
                await self.let_consumer_catch_up()

    def release_held_of(self, use_id: str, *, show: bool) -> None:
        """Shows or drops what a tool has streamed, once its result has been judged."""
        for event in self._held_of.pop(use_id, ()):
            if show:
                self._push_from_tool(event)

    def _push_delta(self, event: Streamed) -> bool:
        typed = delta_of(event) if isinstance(event, dict) else event
        full = self._channel is not None and self._channel.push(typed)
        try:
            self.hooks.on_delta(typed, self.agent)
        except Exception as error:
            self.delta_error = error
            raise

        return full

    def tool_streamed(self, tool_use: ToolUse, data: Any) -> None:
        """Shows an intermediate value of a tool; may be called from any thread."""
        if not self._follow_deltas:
            return

        event = ToolStreamed(tool_use, data)
        if self._held is not None:
            self._held_of.setdefault(tool_use["toolUseId"], []).append(event)
            return

        loop = self.cancellation.loop
        if _running_loop() is loop:
            self._push_from_tool(event)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the tool outlived its run
                loop.call_soon_threadsafe(self._push_from_tool, event)

    def _push_from_tool(self, event: Event) -> None:
        """As `_push_delta`; a follower's error is none of the tool's, so it waits for the next boundary."""
        if not self._follow_deltas:
            return

        try:
            self._push_delta(event)
        except Exception as error:  # noqa: BLE001 - raised in `emit`
            self._follower_error = self._follower_error or error

    async def emit(self, event: Event) -> None:
        """Tells followers of a boundary, and waits until the consumer of the stream has seen it.

        Raises:
            Exception: What a follower raised, now or for a piece that a tool had streamed.
        """
        self.check_followers()
        channel = self._channel
        if channel is not None:
            channel.push(event)

        if self.hooks.plan.on_event:
            await self.hooks.on_event(event, self.agent)

        if channel is not None:
            await self.let_consumer_catch_up()

    def lose_followers(self) -> None:
        """Nobody is shown anything any more; a tool's body may outlive the run in its thread."""
        self._follow_deltas = self._follow_events = False

    def check_followers(self) -> None:
        """Raises what a follower raised for a piece that a tool had streamed."""
        failed, self._follower_error = self._follower_error, None
        try:
            if failed is not None:
                raise failed
        finally:
            failed = None  # or the error's own frame would refer to it

    async def announce_end(self, event: Event) -> None:
        """As `emit`, and does not wait: nothing comes after, and who has the result may call the agent again."""
        if self.hooks.plan.on_event:
            await self.hooks.on_event(event, self.agent)

        if self._channel is not None:
            self._channel.push(event)

    async def let_consumer_catch_up(self) -> None:
        """Waits until the consumer of the stream has taken everything and asks for more."""
        channel = self._channel
        if channel is None:
            return

        try:
            await channel.drained()
        except asyncio.CancelledError:
            if not self.cancellation.claim():
                raise

    # -- the log ---------------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Writes what was noted since the last commit. Not interruptible: a half-written log helps nobody."""
        journal = self.journal
        if journal is None:
            return

        task = asyncio.current_task()
        parked = task is not None and self.cancellation.is_parked(task)
        if task is not None:
            self.cancellation.unpark(task)

        try:
            async with journal.writing:  # tools that run at once commit at once; a store gets records in their order
                records = journal.take()
                if records:
                    await self.hooks.write_records(records, self.agent)
        finally:
            if task is not None and parked:
                self.cancellation.park(task)


def _holds_output(plugin: Any) -> bool:
    return getattr(type(plugin), "tier", "normal") == "policy" and bool(getattr(plugin, "holds_output", False))


def _as_deltas(message: Message) -> list[Streamed]:
    texts = [block["text"] for block in message["content"] if "text" in block]
    return [{"contentBlockDelta": {"contentBlockIndex": i, "delta": {"text": text}}} for i, text in enumerate(texts)]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
