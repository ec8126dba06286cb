"""From what shall become of each message to edits of the history, or to an edit of `agent.messages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ropewalk.kits.calls.edits import ContextRequest, HistoryEdit
from ropewalk.types import Message

if TYPE_CHECKING:
    from ropewalk.agent import Agent

_NEAR: Final = 4
"""Changes with fewer unchanged messages between them are one edit: an edit costs a walk through the history."""


def conversation(request: ContextRequest, agent: Agent) -> list[Message]:
    """The messages that `request.ids` names, as they are stored.

    `request.messages` is what a model sees of them: it may begin with one more, and hold stand-ins.
    """
    history = agent.history
    if request.ids is history.ids:
        return list(history.messages)

    messages = list(request.messages)  # a run beside the conversation, on a branch of it
    return messages[len(messages) - len(request.ids) :]


def edits_of(
    ids: Sequence[int], before: Sequence[Message], after: Sequence[Message | None], reason: str
) -> list[HistoryEdit]:
    """The edits that make `before` what `after` says; each of them leaves a valid history if the whole does.

    Args:
        ids: The id of each message.
        before: The conversation.
        after: For each message what stands there instead: itself, another one, or None to drop it.
        reason: Why, for the log.
    """
    changed = [place for place, message in enumerate(before) if after[place] is not message]
    groups: list[tuple[int, int]] = []
    for place in changed:
        if groups and place - groups[-1][1] <= _NEAR:
            groups[-1] = (groups[-1][0], place)
        else:
            groups.append((place, place))

    return [
        HistoryEdit(ids[first], ids[last], tuple(m for m in after[first : last + 1] if m is not None), reason)
        for first, last in groups
    ]


def put(agent: Agent, after: Sequence[Message | None]) -> None:
    """Makes `agent.messages` what `after` says: for managers that are called by hand, between runs."""
    kept = [message for message in after if message is not None]
    messages = agent.messages
    if len(kept) != len(messages) or any(one is not other for one, other in zip(kept, messages, strict=True)):
        messages[:] = kept
