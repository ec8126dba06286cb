"""What is run: the cases with their arguments, in the order of the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

IMPORT: Final = "import"
CYCLE_10: Final = "cycle, N=10"
CYCLE_100: Final = "cycle, N=100"
AFTER_12: Final = "cycle after 12 messages"
AFTER_5000: Final = "cycle after 5,000 messages"
CONSTRUCT_20: Final = "construct, 20 tools"
MEMORY_1: Final = "memory an agent, 1 tool"
CONSUMED: Final = "delta, with a consumer"
UNCONSUMED: Final = "delta, without a consumer"
ASYNC_TOOLS: Final = "100 async tools of 10 ms"
CROWD: Final = "1,000 agents x 5 cycles"
SESSION_TURN: Final = "a turn with a store"
SESSION_OPEN: Final = "opening 10,000 messages"


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the plan.

    Attributes:
        label: Its name in tables and bars.
        group: Its name on the command line.
        case: The function in `harness.serving.CASES`, or `import`.
        arguments: Of that function.
        quick: Arguments that replace them with --quick.
        fresh: Whether it needs a process of its own.
        most_rounds: An upper bound for --rounds, where a round is long and steady.
        without: Peers that are left out, with the reason.
    """

    label: str
    group: str
    case: str
    arguments: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)
    fresh: bool = False
    most_rounds: int | None = None
    without: dict[str, str] = field(default_factory=dict)

    def arguments_for(self, *, quick: bool) -> dict[str, Any]:
        """The arguments of a run."""
        return {**self.arguments, **self.quick} if quick else self.arguments


_SHORT: Final[dict[str, Any]] = {"seconds": 0.02}
_ELSEWHERE: Final = dict.fromkeys(
    ("strands", "strands_default", "pydantic_ai", "openai_agents", "langgraph", "google_adk", "agno", "smolagents"),
    "compared in the case `store`, with fewer turns",
)
_SQUARE: Final = {"smolagents": "renders all deltas again at every delta, so the cost grows with their square"}

PLAN: Final = (
    Case(IMPORT, "import", "import"),
    Case("construct, 1 tool", "construct", "construct", {"tools": 1}, _SHORT),
    Case(CONSTRUCT_20, "construct", "construct", {"tools": 20}, _SHORT),
    Case(MEMORY_1, "memory", "memory", {"tools": 1}, {"count": 50}, fresh=True, most_rounds=2),
    Case("memory an agent, 20 tools", "memory", "memory", {"tools": 20}, {"count": 50}, fresh=True, most_rounds=1),
    Case("cycle, N=1", "cycle", "cycle", {"n": 1}, _SHORT),
    Case(CYCLE_10, "cycle", "cycle", {"n": 10}, _SHORT),
    Case(CYCLE_100, "cycle", "cycle", {"n": 100}, _SHORT),
    Case("cycle, N=10, sync tool", "cycle", "cycle", {"n": 10, "kind": "sync"}, _SHORT),
    Case(AFTER_12, "growth", "growth", {"messages": 12}, _SHORT),
    Case("cycle after 100 messages", "growth", "growth", {"messages": 100}, _SHORT),
    Case("cycle after 1,000 messages", "growth", "growth", {"messages": 1000}, _SHORT),
    Case(AFTER_5000, "growth", "growth", {"messages": 5000}, _SHORT),
    Case("later turn after 12 messages", "turn", "later_turn", {"messages": 12}, _SHORT),
    Case("later turn after 1,000 messages", "turn", "later_turn", {"messages": 1000}, _SHORT),
    Case("later turn after 5,000 messages", "turn", "later_turn", {"messages": 5000}, _SHORT),
    Case(CONSUMED, "stream", "stream", {"consumer": True}, {"deltas": 1000, **_SHORT}, without=_SQUARE),
    Case(UNCONSUMED, "stream", "stream", {"consumer": False}, {"deltas": 1000, **_SHORT}, without=_SQUARE),
    Case(ASYNC_TOOLS, "parallel", "parallel", {"kind": "async_sleep"}, _SHORT),
    Case("100 sync tools of 10 ms", "parallel", "parallel", {"kind": "sync_sleep"}, _SHORT),
    Case(CROWD, "concurrency", "concurrency", {}, {"agents": 50}, fresh=True),
    Case("turns with a store", "store", "persist", {"seconds": 45}, {"turns": 20}, fresh=True, most_rounds=1),
    Case(
        "turns without a store",
        "store",
        "persist",
        {"turns": 300, "seconds": 25, "store": False},
        {"turns": 20},
        fresh=True,
        most_rounds=1,
    ),
    Case(SESSION_TURN, "session", "session_turn", {}, {"turns": 12}, fresh=True, without=_ELSEWHERE),
    Case(SESSION_OPEN, "session", "session_open", {}, {"messages": 20}, fresh=True, without=_ELSEWHERE),
)
GROUPS: Final = tuple(dict.fromkeys(case.group for case in PLAN))


def chosen(groups: list[str]) -> list[Case]:
    """The cases of some groups.

    Raises:
        ValueError: There is no such group.
    """
    for group in groups:
        if group not in GROUPS:
            raise ValueError(f"there is no case {group!r}: the cases are {', '.join(GROUPS)}")

    return [case for case in PLAN if case.group in groups]
