"""Conversation managers: the two methods that users write, as a plugin."""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, final

from ropewalk.errors import ContextWindowOverflowException
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.context.attempts import Attempts, Overflow
from ropewalk.kits.context.proactive import is_due, threshold_of
from ropewalk.kits.state import JSONState
from ropewalk.markers import hookimpl

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.edits import ContextReason, ContextRequest

logger = logging.getLogger("ropewalk.context")


class ConversationManager(ABC):
    """Keeps the history within bounds: subclass it and give an instance as `Agent(conversation_manager=...)`.

    Both methods edit `agent.messages` in place, and may be async; a method that waits for something should be. What
    they leave is repaired where it is no valid history, and recorded as one change with the manager's name. One manager
    may serve many agents: what it has to remember of one belongs to `state(agent)`.

    Attributes:
        name: Name of the plugin; subclasses may set their own.
        compression_threshold: The share of the window from which on `reduce_context(agent)` is called before a model
            call; None for never.
    """

    name = "conversation-manager"
    compression_threshold: float | None = None

    def __init__(self, *, proactive_compression: Any = None) -> None:
        """Reads the threshold.

        Args:
            proactive_compression: True for 0.7, or `{"compression_threshold": share}`, with a share in (0, 1].

        Raises:
            ValueError: It is something else.
        """
        self.compression_threshold = threshold_of(proactive_compression, type(self).__name__)

    @abstractmethod
    def apply_management(self, agent: Agent, **kwargs: Any) -> Any:
        """Called at the end of each invocation."""

    @abstractmethod
    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> Any:
        """Makes the history smaller.

        Args:
            agent: Whose history.
            e: The overflow that the provider reported; None when the threshold is reached.
            kwargs: For what later versions add.

        Raises:
            Exception: It cannot be made smaller. `raise e` is the usual one: it goes to the caller of the agent, and
                the history is put back as it was before the turn that does not fit. Another kind of error goes to the
                caller too, and takes back the edits of this call.
        """

    def state(self, agent: Agent) -> JSONState:
        """What the manager remembers of one agent; it survives snapshots and sessions."""
        return agent.plugin_state(self.name)

    @hookimpl
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Calls the method that the moment is for."""
        if request.ids is not agent.history.ids:
            return None  # a run beside the conversation: agent.messages is not what it works on

        if reason == "overflow":
            return await self._after_overflow(request, agent)

        _attempts.forget(agent)
        if reason == "after_invocation":
            await _done(self.apply_management(agent))
        elif reason == "before_model" and is_due(request, self.compression_threshold, self.name):
            try:
                await _done(self.reduce_context(agent))
            except Exception:
                # the request still fits, as far as anybody knows: it is the provider's to refuse it
                agent.messages.undo()
                logger.exception("%s could not compress the history of agent %r", self.name, agent.name)

        return None

    async def _after_overflow(self, request: ContextRequest, agent: Agent) -> list[HistoryEdit] | None:
        turn = _attempts.note(agent, agent.messages)
        try:
            await _done(self.reduce_context(agent, request.error))
        except Exception as error:
            _attempts.forget(agent)
            agent.messages.undo()
            if not isinstance(error, ContextWindowOverflowException):
                raise

            if error is not request.error and request.error is not None:
                request.error.add_note(f"{self.name}: {error}")

            return put_back(request, turn)

        return None


def put_back(request: ContextRequest, turn: Overflow) -> list[HistoryEdit]:
    """The edit that ends a turn that does not fit: the count grows back, and the kernel raises the provider's error."""
    if turn.number == 1:
        return []

    reason = "no reduction helped: as it was before"
    return [HistoryEdit(request.ids[0], request.ids[-1], turn.messages, reason)]


_attempts = Attempts()
"""Of the managers that edit in place: subclasses need not call `__init__`. An agent has one run that they work on."""


@final
class GivenManager(ConversationManager):
    """Makes a plugin of any object that has the two methods."""

    def __init__(self, manager: Any) -> None:
        super().__init__()
        self._manager = manager
        self.compression_threshold = getattr(manager, "compression_threshold", None)

    def __repr__(self) -> str:
        return f"GivenManager({self._manager!r})"

    def apply_management(self, agent: Agent, **kwargs: Any) -> Any:
        """Hands it on."""
        return self._manager.apply_management(agent, **kwargs)

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> Any:
        """Hands it on."""
        return self._manager.reduce_context(agent, e, **kwargs)


def is_manager(value: Any) -> bool:
    """Whether an object has the two methods of a conversation manager."""
    return not isinstance(value, type) and all(
        callable(getattr(value, method, None)) for method in ("apply_management", "reduce_context")
    )


def steps_aside(agent: Agent, manager: ConversationManager, *, own: bool = False) -> bool:
    """Whether the agent has another conversation manager: one that is only there unasked gives way to it.

    That is a `ConversationManager`, or whatever plugin was given as `conversation_manager=`; other plugins that
    implement `manage_context` work beside managers.

    Args:
        agent: The agent.
        manager: The one that would give way.
        own: Whether only managers count that the agent was given, and not those that are active unasked.
    """
    hooks = agent.hooks
    plugins = hooks.plugins[: hooks.own] if own else hooks.plugins
    others = any(isinstance(each, ConversationManager) and each is not manager for each in plugins)
    return others or hooks.given.get("conversation_manager", manager.name) != manager.name


async def _done(answer: Any) -> None:
    if inspect.isawaitable(answer):
        await answer
