"""Who follows a run: the consumer of its stream and the plugins that are shown its events, and what they are shown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ropewalk.kits.aio.cancellation import Cancellation
from ropewalk.kits.aio.channel import Channel, Streamed
from ropewalk.kits.events import Event, ToolStreamed, delta_of
from ropewalk.kits.suspension import Suspend
from ropewalk.types import Message, ToolUse

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.hooks.facade import Hooks


class Followed:
    """The part of a run that is looked at from outside.

    Attributes:
        agent: Whose run it is.
        hooks: The hooks of the current cycle; `Agent.add_plugin` takes effect at the next one.
        cancellation: The cancel state.
        delta_error: What a follower raised for a streamed piece.
    """

    __slots__ = (
        "_channel",
        "_follow_deltas",
        "_follow_events",
        "_follower_error",
        "_held",
        "_held_of",
        "agent",
        "cancellation",
        "delta_error",
        "hooks",
    )

    agent: Agent
    hooks: Hooks
    cancellation: Cancellation

    def __init__(self, channel: Channel | None) -> None:
        self._channel = channel
        self._follower_error: Exception | None = None
        self._held: list[Streamed] | None = None
        self._held_of: dict[str, list[Event]] = {}
        self.delta_error: Exception | None = None

    def show_to(self, hooks: Hooks) -> None:
        """Takes the hooks whose plugins follow the run from now on."""
        self.hooks = hooks
        plan = hooks.plan
        self._follow_events = self._channel is not None or bool(plan.on_event)
        self._follow_deltas = self._channel is not None or bool(plan.on_delta)
        self._held = [] if plan.intervene and any(map(_holds_output, hooks.plugins)) else None

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

    async def release_held(self, message: Message, *, same: bool) -> None:
        """Shows what was held back of an answer, or the texts of the message when it is not the same any more."""
        if self._held is None or not self._follow_deltas:
            return

        held, self._held = self._held, []
        show = self._follower()
        whole = same and held and not any(map(_redacts, held))  # nothing is held of what was said before a pause
        for event in held if whole else _as_deltas(message):
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

        await self._tell(event)
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
        await self._tell(event)
        if self._channel is not None:
            self._channel.push(event)

    async def _tell(self, event: Event) -> None:
        if self.hooks.plan.on_event:
            try:
                await self.hooks.on_event(event, self.agent)
            except Suspend as suspend:
                raise RuntimeError(
                    f"on_event cannot pause the run ({suspend}): interrupt in an around_* hook"
                ) from suspend

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


def _holds_output(plugin: Any) -> bool:
    return getattr(type(plugin), "tier", "normal") == "policy" and bool(getattr(plugin, "holds_output", False))


def _redacts(event: Streamed) -> bool:
    """Whether a guardrail takes back what was said before."""
    return isinstance(event, dict) and bool((event.get("redactContent") or {}).get("redactAssistantContentMessage"))


def _as_deltas(message: Message) -> list[Streamed]:
    texts = [block["text"] for block in message["content"] if "text" in block]
    return [{"contentBlockDelta": {"contentBlockIndex": i, "delta": {"text": text}}} for i, text in enumerate(texts)]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
