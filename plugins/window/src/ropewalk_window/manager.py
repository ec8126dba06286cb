"""The sliding window: the newest messages stay, with the task, the pins, and whole tool turns."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ropewalk import ContextWindowOverflowException, HistoryEdit, current_run, hookimpl
from ropewalk.kits.context import (
    Attempts,
    ConversationManager,
    conversation,
    edits_of,
    is_due,
    pinned_places,
    put,
    put_back,
    window_of,
)
from ropewalk.kits.messages.estimate import message_tokens, tokens_around
from ropewalk_window.overflow import MOST_REDUCTIONS, after_overflow, aim_after, before_overflow, excess_over
from ropewalk_window.trimming import trimmed

if TYPE_CHECKING:
    from ropewalk import Agent, ContextRequest
    from ropewalk.kits.calls.edits import ContextReason
    from ropewalk.types import Message
    from ropewalk_window.trimming import Plan

logger = logging.getLogger("ropewalk.window")

WINDOW_SIZE: Final = 40
_SLACK: Final = 0.75
"""Compression goes below its threshold by a quarter, so that it is not due again after the next turn."""


class SlidingWindowConversationManager(ConversationManager):
    """Keeps the newest messages.

    At the end of an invocation the history is cut to `window_size` messages. The first task, pinned messages and the
    newest turn stay; tool calls and their results go together. When a request does not fit the model, long tool results
    are shortened, the oldest first, and then the oldest turns go. A turn that never fits gets the provider's error
    after four reductions, and the history is put back.

    The manager holds no state: it serves any number of agents.
    """

    name = "window"

    def __init__(
        self,
        window_size: int = WINDOW_SIZE,
        should_truncate_results: bool = True,
        *,
        per_turn: bool | int = False,
        pin_first: int | None = None,
        proactive_compression: Any = None,
    ) -> None:
        """Takes the bounds.

        Args:
            window_size: Messages that are kept; 0 drops all that is not pinned. It is exceeded when pins and the newest
                turn are more.
            should_truncate_results: Whether long tool results are shortened.
            per_turn: Whether the window is applied before model calls too: True for each, N for every N-th of a run.
            pin_first: How many messages at the start of the history are treated as pinned.
            proactive_compression: Whether the history is reduced when the request reaches a share of the model's
                window: True for 0.7, or `{"compression_threshold": share}`.

        Raises:
            ValueError: One of the values is of another kind.
        """
        super().__init__(proactive_compression=proactive_compression)
        self.window_size: Final = _checked("window_size", window_size, 0)
        self.should_truncate_results: Final = should_truncate_results
        self.per_turn: Final = per_turn if isinstance(per_turn, bool) else _checked("per_turn", per_turn, 1)
        self.pin_first: Final = None if pin_first is None else _checked("pin_first", pin_first, 0)
        self._attempts = Attempts()
        cls = type(self)
        mine = SlidingWindowConversationManager
        self._edits_in_place = (
            cls.apply_management is not mine.apply_management or cls.reduce_context is not mine.reduce_context
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(window_size={self.window_size})"

    # -- by hand, between runs -------------------------------------------------------------------------------------

    def apply_management(self, agent: Agent, **kwargs: Any) -> Any:  # noqa: ARG002 - what callers may pass
        """Cuts `agent.messages` to the window."""
        put(agent, self._trimmed(agent.messages, running=False))

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Makes `agent.messages` smaller by about a quarter.

        Raises:
            ContextWindowOverflowException: There was an overflow, and all that is left has to stay.
        """
        messages = list(agent.messages)
        tokens = sum(map(message_tokens, messages))
        plan = self._reduced(messages, tokens - aim_after(1, tokens, None), overflow=e is not None)
        if any(new is not old for new, old in zip(plan, messages, strict=True)):
            put(agent, plan)
        elif e is not None:
            raise ContextWindowOverflowException(
                f"the history cannot be made smaller: {_what_stays(messages)}; unpin messages or ask for less"
            ) from e
        else:
            logger.warning("the history of agent %r cannot be made smaller: %s", agent.name, _what_stays(messages))

    # -- during runs -----------------------------------------------------------------------------------------------

    @hookimpl
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Proposes what goes. An agent that reaches none of the bounds pays for a comparison."""
        if self._is_idle(request, reason):
            return None

        if self._edits_in_place:
            return await self._manage_in_place(request, reason, agent)

        if reason == "overflow":
            return self._reduction(request, agent)

        self._attempts.forget(current_run())
        if reason == "after_invocation" or self._applies_now():
            edits = self._slid(request, agent, running=reason != "after_invocation")
            if edits:
                return edits

        if reason == "before_model" and is_due(request, self.compression_threshold, self.name):
            return self._compressed(request, agent)

        return None

    def _is_idle(self, request: ContextRequest, reason: ContextReason) -> bool:
        """Whether there is nothing to look at: by far the most frequent case."""
        if reason == "overflow" or self._edits_in_place:
            return False

        if reason == "after_tools":
            return True

        measures = reason == "before_model" and self.compression_threshold is not None
        cuts = reason == "after_invocation" or self.per_turn is not False
        return not (measures or self._attempts or (cuts and len(request.ids) > self.window_size))

    async def _manage_in_place(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """For subclasses that have methods of their own: those are called."""
        if reason == "before_model" and self._applies_now():
            await super().manage_context(request, "after_invocation", agent)
            if agent.messages.before_edit is not None:
                return None  # the count is of what was there before

        return await super().manage_context(request, reason, agent)

    def _applies_now(self) -> bool:
        number = current_run().cycle + 2  # of the model call to come, from 1; the cycle begins after this hook
        return self.per_turn is not False and number % int(self.per_turn) == 0

    def _trimmed(self, messages: list[Message], *, running: bool) -> Plan:
        pinned = pinned_places(messages, self.pin_first or 0)
        plan = trimmed(messages, self.window_size, pinned, running=running)
        left = sum(message is not None for message in plan)
        if left > max(self.window_size, 1):
            logger.debug("%d messages stay in a window of %d: pins and whole turns", left, self.window_size)

        return plan

    def _reduced(self, messages: list[Message], excess: float, *, overflow: bool) -> Plan:
        pinned = pinned_places(messages, self.pin_first or 0)
        truncates = self.should_truncate_results
        if overflow:
            return after_overflow(messages, self.window_size, excess, pinned, truncates=truncates)

        return before_overflow(messages, excess, pinned, truncates=truncates)

    def _slid(self, request: ContextRequest, agent: Agent, *, running: bool) -> list[HistoryEdit]:
        if len(request.ids) <= self.window_size:
            return []

        messages = conversation(request, agent)
        plan = self._trimmed(messages, running=running)
        return edits_of(request.ids, messages, plan, f"the window holds {self.window_size} messages")

    def _compressed(self, request: ContextRequest, agent: Agent) -> list[HistoryEdit]:
        messages, tokens, share = conversation(request, agent), request.tokens, self.compression_threshold or 0.0
        aim = share * window_of(request, self.name) * _SLACK
        plan = self._reduced(messages, excess_over(aim, tokens, messages, _around(agent)), overflow=False)
        return edits_of(request.ids, messages, plan, f"the request reached {share:.0%} of the model's window")

    def _reduction(self, request: ContextRequest, agent: Agent) -> list[HistoryEdit]:
        messages, tokens, run = conversation(request, agent), request.tokens, current_run()
        turn = self._attempts.note(run, messages, run.cycle)
        if turn.number <= MOST_REDUCTIONS:
            aim = aim_after(turn.number, tokens, request.window)
            plan = self._reduced(messages, excess_over(aim, tokens, messages, _around(agent)), overflow=True)
            edits = edits_of(request.ids, messages, plan, f"the request did not fit, reduction {turn.number}")
            if edits:
                return edits

        self._attempts.forget(run)
        if request.error is not None:
            size = "" if request.window is None else f", and the model's window {request.window}"
            request.error.add_note(f"window: {turn.number - 1} reductions did not help: {_what_stays(messages)}{size}")

        return put_back(request, turn)


def _around(agent: Agent) -> int:
    return tokens_around(agent.system_blocks, agent.tool_registry.specs)


def _what_stays(messages: list[Message]) -> str:
    """For errors: how much there is when nothing more can go, and which message is to blame."""
    sizes = [message_tokens(message) for message in messages]
    if not sizes:
        return "there are no messages"

    largest = max(range(len(sizes)), key=sizes.__getitem__)
    return (
        f"{len(sizes)} messages with about {sum(sizes)} tokens have to stay; the largest is number {largest}, "
        f"of the {messages[largest]['role']}, with about {sizes[largest]} tokens"
    )


def _checked(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"SlidingWindowConversationManager: {name}={value!r}: give a whole number of at least {least}")

    return value
