"""What Ropewalk must not exceed. The bars are the bars: no tolerance, the median of the rounds counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from harness import plan
from harness.results import Results

SUBJECT: Final = "ropewalk"
FLOOR: Final = "floor"


@dataclass(frozen=True, slots=True)
class Bar:
    """An upper limit.

    Attributes:
        label: The case.
        metric: Which of its numbers.
        limit: What must not be exceeded.
        aim: What the project wants to reach; not checked.
        against: `floor`: the ratio to it counts. `absolute`: the number itself. Else: the ratio to that other case.
        unit: How the number is shown.
    """

    label: str
    metric: str
    limit: float
    aim: float | None = None
    against: str = FLOOR
    unit: str = "x"


BARS: Final = (
    Bar(plan.IMPORT, "cpu_us", 6.0, 3.5),
    Bar(plan.CONSTRUCT_20, "cpu_us", 50.0, against="absolute", unit=" us"),
    Bar(plan.MEMORY_1, "traced_kib_per_agent", 4.0, against="absolute", unit=" KiB"),
    Bar(plan.CYCLE_10, "cpu_us", 10.0, 5.0),
    Bar(plan.CYCLE_100, "cpu_us", 10.0, 5.0),
    Bar(plan.AFTER_5000, "cpu_us", 1.5, against=plan.AFTER_12),
    Bar(plan.CONSUMED, "cpu_us", 3.0, 1.5),
    Bar(plan.UNCONSUMED, "cpu_us", 3.0, 1.5),
    Bar(plan.ASYNC_TOOLS, "wall_us", 1.4),
    Bar(plan.CROWD, "times_ideal", 4.0, against="absolute"),
    Bar(plan.SESSION_TURN, "extra_cpu_us", 150.0, against="absolute", unit=" us"),
    Bar(plan.SESSION_TURN, "cpu_late_to_early", 1.2, against="absolute"),
    Bar(plan.SESSION_TURN, "bytes_late_to_early", 1.2, against="absolute"),
    Bar(plan.SESSION_OPEN, "cpu_us", 500_000.0, against="absolute", unit=" us"),
)

Verdict = Literal["met", "missed", "not run", "failed"]


def measured(bar: Bar, results: Results) -> float | None:
    """What a bar is compared with; None when it was not measured."""
    subject = (bar.label, SUBJECT)
    if bar.against == "absolute":
        return results.value(bar.label, SUBJECT, bar.metric)

    under = (bar.label, FLOOR) if bar.against == FLOOR else (bar.against, SUBJECT)
    return results.ratio(subject, under, bar.metric)


def verdict(bar: Bar, results: Results) -> Verdict:
    """Whether a bar is met. A case that was asked for and gave no number has failed."""
    value = measured(bar, results)
    if value is None:
        return "failed" if results.of(bar.label, SUBJECT) else "not run"

    return "met" if value <= bar.limit else "missed"


def all_kept(results: Results) -> bool:
    """Whether no bar is missed and no case of theirs failed."""
    return all(verdict(bar, results) in ("met", "not run") for bar in BARS)
