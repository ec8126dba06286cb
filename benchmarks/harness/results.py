"""Numbers by case, peer and round, and the ratios between them.

Rounds are interleaved (A B, A B ...): a ratio is taken within a round, where noise met both alike, and then the median
of the rounds. A ratio of medians would compare different moments of a shared machine.
"""

from __future__ import annotations

from statistics import median
from typing import Any, TypeAlias

Round: TypeAlias = dict[str, Any]


class Results:
    """What was measured so far."""

    def __init__(self) -> None:
        self.rounds: dict[str, dict[str, list[Round]]] = {}

    def add(self, label: str, peer: str, numbers: Round) -> None:
        """Adds a round. Every peer of a case must get one in each round, if only a `skip` or an `error`."""
        self.rounds.setdefault(label, {}).setdefault(peer, []).append(numbers)

    def of(self, label: str, peer: str) -> list[Round]:
        """The rounds of one case and peer."""
        return self.rounds.get(label, {}).get(peer, [])

    def value(self, label: str, peer: str, metric: str) -> float | None:
        """The median of the rounds; None when there is none."""
        values = [numbers[metric] for numbers in self.of(label, peer) if metric in numbers]
        return median(values) if values else None

    def ratio(self, over: tuple[str, str], under: tuple[str, str], metric: str) -> float | None:
        """The median of the rounds' ratios between two pairs of (case, peer); None when no round has both."""
        pairs = zip(self.of(*over), self.of(*under), strict=False)
        ratios = [a[metric] / b[metric] for a, b in pairs if metric in a and b.get(metric)]
        return median(ratios) if ratios else None

    def remark(self, label: str, peer: str) -> str | None:
        """Why there are no numbers, or not in every round."""
        for numbers in self.of(label, peer):
            for kind in ("error", "skip"):
                if kind in numbers:
                    return f"{kind}: {numbers[kind]}"

        return None

    @property
    def failed(self) -> list[str]:
        """Cases that ended in an error."""
        return [
            f"{label} / {peer}: {remark}"
            for label, peers in self.rounds.items()
            for peer in peers
            if (remark := self.remark(label, peer)) and remark.startswith("error")
        ]
