"""No management at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ropewalk import ContextWindowOverflowException
from ropewalk.kits.context import ConversationManager

if TYPE_CHECKING:
    from ropewalk import Agent


@final
class NullConversationManager(ConversationManager):
    """Leaves the history as it is; an overflow goes to the caller."""

    name = "null-window"

    def __init__(self) -> None:
        super().__init__()

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Does nothing."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:  # noqa: ARG002
        """Raises the error.

        Raises:
            Exception: The error given, or ContextWindowOverflowException.
        """
        raise e or ContextWindowOverflowException(
            f"agent {agent.name!r} has a NullConversationManager, which reduces nothing: give another "
            "conversation_manager, or start a new conversation"
        )
