"""Conversation managers: the two methods that users write, as a plugin."""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, final

from ropewalk.kits.context.attempts import Attempts
from ropewalk.kits.context.proactive import is_due, threshold_of
from ropewalk.kits.state import JSONState
from ropewalk.markers import hookimpl

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.edits import ContextReason, ContextRequest, HistoryEdit

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
            Exception: It cannot be made smaller; after an overflow the error goes to the caller of the agent, and the
                history is put back as it was. `raise e` is the usual one.
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
            await self._after_overflow(request, agent)
            return None

        _attempts.forget(agent)
        if reason == "after_invocation":
            await _done(self.apply_management(agent))
        elif reason == "before_model" and is_due(request, self.compression_threshold, self.name):
            try:
                await _done(self.reduce_context(agent))
            except Exception:
                # the request still fits, as far as anybody knows: it is the provider's to refuse it
                logger.exception("%s could not compress the history of agent %r", self.name, agent.name)

        return None

    async def _after_overflow(self, request: ContextRequest, agent: Agent) -> None:
        turn = _attempts.note(agent, agent.messages)
        try:
            await _done(self.reduce_context(agent, request.error))
        except Exception:
            _attempts.forget(agent)
            if list(agent.messages) != list(turn.messages):
                agent.messages[:] = turn.messages

            raise


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


def steps_aside(agent: Agent, manager: ConversationManager) -> bool:
    """Whether the agent has another conversation manager: one that is only there unasked gives way to it."""
    return any(isinstance(each, ConversationManager) and each is not manager for each in agent.hooks.plugins)


async def _done(answer: Any) -> None:
    if inspect.isawaitable(answer):
        await answer
