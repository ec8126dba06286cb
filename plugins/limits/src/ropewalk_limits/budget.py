"""What may be spent and what was, by whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Self

from ropewalk.kits.aio.seam import current_seam
from ropewalk_limits.limits import ORDER, checked_limits


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount of everything that can be limited; see `Limits` for the units."""

    turns: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    seconds: float = 0.0
    tool_calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.turns + other.turns,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.seconds + other.seconds,
            self.tool_calls + other.tool_calls,
            self.cost + other.cost,
        )

    def __sub__(self, other: Spent) -> Spent:
        return Spent(
            self.turns - other.turns,
            self.output_tokens - other.output_tokens,
            self.total_tokens - other.total_tokens,
            self.seconds - other.seconds,
            self.tool_calls - other.tool_calls,
            self.cost - other.cost,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


_NOTHING: Final = Spent()
_TURN: Final = Spent(turns=1)


class Budget:
    """A budget that calls of one or many agents share, in whatever threads they run.

    Give it as `limits=` of each call. The agents that an agent's tools call draw on it too, without being told. When a
    limit is reached, each of the calls stops before its next turn. Nothing is given back: a new budget is a new object.

    Args:
        limits: `turns`, `output_tokens`, `total_tokens`, `seconds`, `tool_calls`, `cost`; none of them is needed. See
            `Limits` for their units. `seconds` is the time in which at least one call is under way.

    Raises:
        TypeError: There is no such limit, or a value is no positive number of its kind.
    """

    __slots__ = (
        "__weakref__",
        "_active",
        "_began",
        "_beside",
        "_clock",
        "_elapsed",
        "_lock",
        "_spent",
        "_sum",
        "limits",
    )

    def __init__(self, **limits: float) -> None:
        self.limits: Final[Mapping[str, float]] = MappingProxyType(checked_limits(limits, "Budget"))
        self._lock = threading.Lock()
        self._spent: dict[str, Spent] = {}
        self._beside: dict[str, Spent] = {}
        self._sum = Spent()
        self._active = 0
        self._began = self._elapsed = 0.0
        self._clock: Callable[[], float] = current_seam().monotonic

    def __repr__(self) -> str:
        total = self.total
        parts = (f"{name} {getattr(total, name):g} of {limit:g}" for name, limit in self.limits.items())
        return f"<Budget: {', '.join(parts) or 'no limits'}>"

    @property
    def spent(self) -> dict[str, Spent]:
        """What each agent has spent, by its name. Agents of one name, such as clones, are counted together.

        Their seconds are those of their calls, also where these overlap.
        """
        with self._lock:
            return dict(self._spent)

    @property
    def beside(self) -> dict[str, Spent]:
        """The part of it that went to model calls beside the conversation, such as summaries, by their purpose."""
        with self._lock:
            return dict(self._beside)

    @property
    def total(self) -> Spent:
        """What all have spent together; seconds in which several calls were under way count once."""
        with self._lock:
            return replace(self._sum, seconds=self._seconds())

    @property
    def reached(self) -> str | None:
        """The limit that is reached, the first in the order of precedence; None when there is none."""
        return next((name for name in ORDER if name in self.limits and self.has_reached(name)), None)

    def has_reached(self, name: str) -> bool:
        """Whether one of its limits is reached."""
        with self._lock:
            spent = self._seconds() if name == "seconds" else getattr(self._sum, name)

        return bool(spent >= self.limits[name])

    def take_turn(self, agent: str) -> bool:
        """Counts a turn that is about to begin; False, and nothing is counted, when none is left."""
        with self._lock:
            if "turns" in self.limits and self._sum.turns >= self.limits["turns"]:
                return False

            self._add(agent, _TURN)
            return True

    def add(self, agent: str, amount: Spent) -> None:
        """Counts what an agent has spent, or what was spent for it outside of its calls."""
        with self._lock:
            self._add(agent, amount)

    def attribute(self, purpose: str, amount: Spent) -> None:
        """Notes what a model call beside the conversation was for; it is counted elsewhere."""
        with self._lock:
            self._beside[purpose] = self._beside.get(purpose, _NOTHING) + amount

    def to_dict(self) -> dict[str, Any]:
        """What was spent, as JSON."""
        with self._lock:
            return {
                "seconds": self._seconds(),
                "spent": {agent: spent.to_dict() for agent, spent in self._spent.items()},
                "beside": {purpose: spent.to_dict() for purpose, spent in self._beside.items()},
            }

    def take_up(self, kept: Mapping[str, Any]) -> None:
        """Counts what `to_dict` said of another budget, also its seconds."""
        with self._lock:
            self._elapsed += kept["seconds"]
            for agent, spent in kept["spent"].items():
                self._add(agent, Spent(**spent))

            for purpose, spent in kept["beside"].items():
                self._beside[purpose] = self._beside.get(purpose, _NOTHING) + Spent(**spent)

    def __enter__(self) -> Self:
        """Starts the clock, for one call more."""
        with self._lock:
            if self._active == 0:
                self._clock = current_seam().monotonic
                self._began = self._clock()

            self._active += 1
            return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0:
                self._elapsed += self._clock() - self._began

    def _add(self, agent: str, amount: Spent) -> None:
        self._spent[agent] = self._spent.get(agent, _NOTHING) + amount
        self._sum += amount

    def _seconds(self) -> float:
        return self._elapsed + (self._clock() - self._began if self._active else 0.0)
