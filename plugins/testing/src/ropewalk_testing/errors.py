"""What goes wrong with a script itself, as opposed to the faults that it plays."""

from __future__ import annotations

from ropewalk.errors import RopewalkError


class ScriptError(RopewalkError, ValueError):
    """A script holds something that is no turn."""


class ScriptExhausted(RopewalkError):  # noqa: N818 - reads as the fact it states
    """The model was called more often than its script has turns.

    It is no `ModelError` on purpose: nothing should retry it or fall back to another model.

    Attributes:
        turns: How many turns the script had.
    """

    def __init__(self, turns: int, who: str = "ScriptedModel") -> None:
        self.turns = turns
        count = f"{turns} turn" if turns == 1 else f"{turns} turns"
        super().__init__(
            f"the script of this {who} has {count} and call {turns + 1} was made: add a turn to the script, "
            "or find out why the agent went on (a script that ends in a tool use always needs one more turn)"
        )
