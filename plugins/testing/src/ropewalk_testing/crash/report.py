"""What came of killing a run at every place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ropewalk_testing.crash.killing import KillPoint


@dataclass(frozen=True, slots=True)
class Finding:
    """One kill after which something was wrong.

    Attributes:
        point: Where the process was killed.
        problems: What was wrong afterwards.
    """

    point: KillPoint
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"killed at {self.point}:", *(f"  - {problem}" for problem in self.problems)])


@dataclass(slots=True)
class Report:
    """All kills of one run.

    Attributes:
        points: How many places there are.
        killed: Where processes were killed, per kind of record.
        missed: Places that a process did not come by: the order of writes is not the same each time.
        findings: Kills after which something was wrong.
        seconds: How long it took.
    """

    points: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.killed.total()

    def check(self) -> None:
        """Fails a test when something was wrong.

        Raises:
            AssertionError: Something was; it is told of each kill.
        """
        __tracebackhide__ = True
        if self.findings:
            raise AssertionError("\n".join([str(self), *map(str, self.findings)]))

        if not self.kills:
            raise AssertionError(f"{self}: no process was killed")

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.killed.items()))
        missed = f", {self.missed} places missed" if self.missed else ""
        return (
            f"{self.points} kill points, {self.kills} tried in {self.seconds:.1f} s ({kinds}){missed}: "
            f"{len(self.findings)} with faults"
        )
