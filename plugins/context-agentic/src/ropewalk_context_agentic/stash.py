"""What was taken out of the context, to be read again: kept in the plugin's cell, so it survives with the agent."""

from __future__ import annotations

from typing import Final

from ropewalk import JSONState

_ORDER: Final = "stashed"
_PREFIX: Final = "stash."
MOST_CHARS: Final = 400_000
"""Characters that are kept of one agent; the oldest go first."""


def keep(state: JSONState, reference: str, text: str) -> None:
    """Keeps a text under a reference; of one that is longer than all that is kept, the end is left out, and it says so.

    What stood under the reference is replaced.
    """
    if len(text) > MOST_CHARS:
        note = f"\n[... the rest was not kept: of {len(text)} characters {MOST_CHARS} are]"
        text = text[: MOST_CHARS - len(note)] + note

    order = [each for each in state.get(_ORDER, []) if each[0] != reference]
    order.append([reference, len(text)])
    state.set(_PREFIX + reference, text)
    while sum(size for _, size in order) > MOST_CHARS:
        oldest, _ = order.pop(0)
        state.delete(_PREFIX + oldest)

    state.set(_ORDER, order)


def read(state: JSONState, reference: str) -> str | None:
    """The text of a reference; None when there is none, or not any more."""
    text: str | None = state.get(_PREFIX + reference)
    return text


def references(state: JSONState) -> list[str]:
    """The references that can be read, the newest last."""
    return [reference for reference, _ in state.get(_ORDER, [])]
