"""`agent.messages`: a real list that its owner may edit between runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ropewalk.errors import HistoryError
from ropewalk.types import Message


class MessageList(list[Message]):
    """The conversation as a list: JSON, `==` and `isinstance` work as with any list.

    Edits between runs are staged: they show at once, and are checked, repaired and recorded as one change when the
    next run starts. During a run they raise `HistoryError`.
    """

    __slots__ = ("asked", "before_edit", "locked")

    def __init__(self, messages: list[Message] | tuple[Message, ...] = ()) -> None:
        super().__init__(messages)
        self.locked = False
        self.asked = 0  # how many calls of the model beside the conversation are under way
        self.before_edit: list[Message] | None = None

    def _stage(self) -> None:
        if self.locked or self.asked:
            raise HistoryError(
                "agent.messages was edited while the agent runs: "
                "edit it between runs, or return HistoryEdits from manage_context"
            )

        if self.before_edit is None:
            self.before_edit = list(self)

    def undo(self) -> None:
        """Takes back the edits that are staged."""
        before, self.before_edit = self.before_edit, None
        if before is not None:
            list.__setitem__(self, slice(None), before)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are plain lists: what is copied is the conversation, not its owner's bookkeeping."""
        return (list, (list(self),))


def _staged(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    @wraps(plain)
    def edit(self: MessageList, *args: Any, **kwargs: Any) -> Any:
        self._stage()
        return plain(self, *args, **kwargs)

    return edit


for _name in (
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse",
    "__setitem__", "__delitem__", "__iadd__", "__imul__",
):  # fmt: skip
    setattr(MessageList, _name, _staged(_name))
