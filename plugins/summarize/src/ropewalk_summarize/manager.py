"""The summarizing manager: the oldest part of the history becomes a summary when the room gets tight."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any, Final

from ropewalk import ContextWindowOverflowException, HistoryEdit, current_run, hookimpl
from ropewalk.kits.aio.blocking import run_blocking
from ropewalk.kits.context import Attempts, ConversationManager, conversation, is_due, put, window_of
from ropewalk.kits.context.summaries import SummaryCancelledError, SummaryError, summary_of
from ropewalk.kits.messages.estimate import message_tokens
from ropewalk_summarize.asking import asker, window_for
from ropewalk_summarize.planning import NONE, Excess, plan

if TYPE_CHECKING:
    from ropewalk import Agent, ContextRequest
    from ropewalk.kits.calls.edits import ContextReason
    from ropewalk.kits.context.folding import Folding
    from ropewalk.types import Message

logger = logging.getLogger("ropewalk.summarize")

SUMMARY_RATIO: Final = 0.3
PRESERVE_RECENT: Final = 10
_RATIOS: Final = (0.1, 0.8)
_MOST_REDUCTIONS: Final = 4
_NEEDED: Final = 0.95
_AIM: Final = 0.75
_GROWTH: Final = 1.1
_FAILED: Final = "failed_at"
_REMOVED: Final = "removed_message_count"


class SummarizingConversationManager(ConversationManager):
    """Replaces the oldest messages by a summary when a request does not fit, or earlier with `proactive_compression`.

    The first task, pinned messages and the newest turn stay word for word; tool calls and their results go together;
    the next summary takes in the one before it. A summary that fails, is empty or is not shorter than what it stands
    for changes nothing. A turn that never fits gets the provider's error after four summaries, and the history is put
    back.

    One manager serves any number of agents.
    """

    name = "summarize"

    def __init__(
        self,
        summary_ratio: float = SUMMARY_RATIO,
        preserve_recent_messages: int = PRESERVE_RECENT,
        summarization_agent: Any = None,
        summarization_system_prompt: str | None = None,
        *,
        pin_first: int | None = None,
        proactive_compression: Any = None,
    ) -> None:
        """Takes the bounds and who summarizes.

        Args:
            summary_ratio: The share of the messages that becomes a summary; held between 0.1 and 0.8.
            preserve_recent_messages: Messages at the end that stay. Where they alone would not fit a window that is
                known, fewer stay.
            summarization_agent: An agent that writes the summaries. Each is asked of a clone, so that agent's own
                conversation does not change. Default is the model of the agent itself.
            summarization_system_prompt: What that model is told in place of the usual instructions.
            pin_first: How many messages at the start of the history are treated as pinned; a summary stands behind
                them.
            proactive_compression: Whether the history is summarized when the request reaches a share of the model's
                window: True for 0.7, or `{"compression_threshold": share}`.

        Raises:
            ValueError: One of the values is of another kind, or both an agent and a prompt are given.
        """
        super().__init__(proactive_compression=proactive_compression)
        if summarization_agent is not None and summarization_system_prompt is not None:
            raise ValueError(
                "SummarizingConversationManager: summarization_agent and summarization_system_prompt are both given: "
                "give the prompt to the agent"
            )

        if summarization_agent is not None and not callable(getattr(summarization_agent, "invoke_async", None)):
            raise ValueError(f"SummarizingConversationManager: summarization_agent={summarization_agent!r} is no agent")

        self.summary_ratio: Final = _ratio(summary_ratio)
        self.preserve_recent_messages: Final = _count("preserve_recent_messages", preserve_recent_messages)
        self.pin_first: Final = None if pin_first is None else _count("pin_first", pin_first)
        self.summarization_agent: Final = summarization_agent
        self.summarization_system_prompt: Final = summarization_system_prompt
        self._attempts = Attempts()
        cls = type(self)
        mine = SummarizingConversationManager
        self._edits_in_place = (
            cls.apply_management is not mine.apply_management or cls.reduce_context is not mine.reduce_context
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(summary_ratio={self.summary_ratio}, "
            f"preserve_recent_messages={self.preserve_recent_messages})"
        )

    # -- by hand ---------------------------------------------------------------------------------------------------

    def apply_management(self, agent: Agent, **kwargs: Any) -> Any:
        """Does nothing: a summary is made when the room gets tight."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Summarizes the oldest part of `agent.messages`. To be awaited where an event loop runs.

        Raises:
            ContextWindowOverflowException: There are too few messages, or there is no usable summary.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run_blocking(lambda: self._reduce(agent, e), lambda: None)

        return self._reduce(agent, e)

    async def _reduce(self, agent: Agent, e: Exception | None) -> None:
        messages = list(agent.messages)
        try:
            folding, text = await self._summarized(messages, agent, None, NONE)
        except SummaryError as error:
            raise ContextWindowOverflowException(f"the history cannot be made smaller: {error}") from e or error

        put(agent, [*folding.with_summary(text), *messages[folding.end :]])

    # -- during runs -----------------------------------------------------------------------------------------------

    @hookimpl
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Proposes the summary. An agent whose requests fit pays for a comparison."""
        if self._edits_in_place:
            return await super().manage_context(request, reason, agent)

        if reason == "overflow":
            return await self._when_it_overflowed(request, agent)

        if reason != "before_model":
            return None

        self._attempts.forget(current_run())
        if not is_due(request, self.compression_threshold, self.name):
            return None

        return await self._before_overflow(request, agent)

    async def _before_overflow(self, request: ContextRequest, agent: Agent) -> list[HistoryEdit] | None:
        tokens, share, state = request.tokens, self.compression_threshold or 1.0, self.state(agent)
        failed = state.get(_FAILED, 0)
        if failed / _GROWTH < tokens < failed * _GROWTH:
            return None  # it failed a moment ago: not again for each turn

        window = window_of(request, self.name)
        excess = Excess(tokens - share * window * _NEEDED, tokens - share * window * _AIM)
        try:
            return await self._edits(request, agent, excess, f"the request reached {share:.0%} of the model's window")
        except Exception as error:  # noqa: BLE001 - the request still fits, as far as anybody knows
            if _is_cancel(error):
                return None

            state.set(_FAILED, tokens)
            _warn(agent, error)
            return None

    async def _when_it_overflowed(self, request: ContextRequest, agent: Agent) -> list[HistoryEdit] | None:
        run, messages = current_run(), conversation(request, agent)
        turn = self._attempts.note(run, messages)
        why: object = f"{_MOST_REDUCTIONS} summaries did not help"
        if turn.number <= _MOST_REDUCTIONS:
            tokens, window = request.tokens, request.window
            # whatever the estimate says, it was too much
            excess = NONE if window is None else Excess(tokens - window * _NEEDED, tokens - min(tokens, window) * _AIM)
            try:
                return await self._edits(request, agent, excess, f"the request did not fit, summary {turn.number}")
            except Exception as error:  # noqa: BLE001 - the overflow is what the caller has to know
                if _is_cancel(error):
                    return None

                _warn(agent, error)
                why = error

        self._attempts.forget(run)
        if request.error is not None:
            size = "" if request.window is None else f", and the model's window {request.window}"
            request.error.add_note(f"summarize: {why}; {_what_there_is(messages)}{size}")

        if turn.number == 1:
            return None

        # the count grows back, so the kernel raises the provider's error
        return [HistoryEdit(request.ids[0], request.ids[-1], turn.messages, "no summary helped: as it was before")]

    async def _edits(self, request: ContextRequest, agent: Agent, excess: Excess, reason: str) -> list[HistoryEdit]:
        folding, text = await self._summarized(conversation(request, agent), agent, request.window, excess)
        return [folding.edit(request.ids, text, reason)]

    async def _summarized(
        self, messages: list[Message], agent: Agent, window: int | None, excess: Excess
    ) -> tuple[Folding, str]:
        folding = plan(
            messages,
            ratio=self.summary_ratio,
            recent=self.preserve_recent_messages,
            pin_first=self.pin_first or 0,
            window=window,
            excess=excess,
        )
        if folding is None:
            raise SummaryError(
                f"too few messages to summarize: {len(messages)}, of which {self.preserve_recent_messages} recent ones "
                "and what is pinned stay; lower preserve_recent_messages or unpin messages"
            )

        asked = self.summarization_agent
        who = None if asked is agent else asked
        ask = asker(agent, who, self.summarization_system_prompt)
        text = await summary_of(folding, ask, window_for(who, window))
        state = self.state(agent)
        state.delete(_FAILED)
        state.set(_REMOVED, state.get(_REMOVED, 0) + len(folding.material))
        return folding, text


def _is_cancel(error: Exception) -> bool:
    """Whether the summary was cancelled with its run; an agent that writes it may also be cancelled alone."""
    return isinstance(error, SummaryCancelledError) and current_run().cancelled


def _warn(agent: Agent, error: Exception) -> None:
    told = None if isinstance(error, SummaryError) else error  # its text says it all
    logger.warning("the history of agent %r was not summarized: %s", agent.name, error, exc_info=told)


def _what_there_is(messages: list[Message]) -> str:
    """For errors: which message is to blame."""
    sizes = [message_tokens(message) for message in messages]
    if not sizes:
        return "there are no messages"

    largest = max(range(len(sizes)), key=sizes.__getitem__)
    return (
        f"there are {len(sizes)} messages with about {sum(sizes)} tokens; the largest is number {largest}, of the "
        f"{messages[largest]['role']}, with about {sizes[largest]} tokens"
    )


def _ratio(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"SummarizingConversationManager: summary_ratio={value!r}: give a share from 0.1 to 0.8")

    least, most = _RATIOS
    return float(min(max(value, least), most))


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"SummarizingConversationManager: {name}={value!r}: give a whole number of at least 0")

    return value
