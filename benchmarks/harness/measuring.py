"""Clocks, memory, and repeating a run until the numbers settle."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from harness.driver import Driver
from harness.script import Calls

T = TypeVar("T")
_COLLECT_EVERY: Final = 10


class WorkNotDoneError(Exception):
    """A run did not do what was timed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the run did not do the work: {what}")


def need(done: bool, what: str) -> None:
    """Refuses a measurement of work that was not done."""
    if not done:
        raise WorkNotDoneError(what)


class Clock:
    """Wall and CPU seconds of a `with` block."""

    __slots__ = ("cpu", "wall")

    def __enter__(self) -> Self:
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def resident_kib(field: str = "VmRSS") -> int:
    """Resident memory of this process (`VmRSS`), or its peak (`VmHWM`)."""
    with Path("/proc/self/status").open(encoding="ascii") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1])

    raise OSError(f"/proc/self/status has no {field}: memory is measured on Linux only")


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to repeat: until `seconds` have passed or `most` runs are done, at least `least` times."""

    seconds: float
    least: int = 3
    most: int = 400


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of one kind of run, in seconds, and the tool calls that all of its timed runs made."""

    wall: float
    cpu: float
    repetitions: int
    calls: int


class Sampler:
    """One kind of run, timed again and again, each time on a fresh agent."""

    def __init__(
        self,
        driver: Driver,
        make: Callable[[], Any],
        run: Callable[[Any], Awaitable[T]],
        check: Callable[[T], None],
    ) -> None:
        self._driver, self._make, self._run, self._check = driver, make, run, check
        self._walls: list[float] = []
        self._cpus: list[float] = []
        self._calls = 0

    async def sample(self, *, keep: bool = True) -> None:
        """Runs once."""
        agent = self._make()
        await self._driver.prepare(agent)
        Calls.count = 0
        if len(self._walls) % _COLLECT_EVERY == 0:
            gc.collect()

        with Clock() as clock:
            answer = await self._run(agent)

        self._check(answer)
        if keep:
            self._walls.append(clock.wall)
            self._cpus.append(clock.cpu)
            self._calls += Calls.count

    @property
    def timing(self) -> Timing:
        """The medians so far."""
        return Timing(statistics.median(self._walls), statistics.median(self._cpus), len(self._walls), self._calls)


async def repeat(budget: Budget, *samplers: Sampler) -> list[Timing]:
    """Samples in turn, so that noise meets all alike; the first sample of each is thrown away."""
    for sampler in samplers:
        await sampler.sample(keep=False)

    began = time.perf_counter()
    for count in itertools.count(1):
        for sampler in samplers:
            await sampler.sample()

        if count >= budget.least and (count >= budget.most or time.perf_counter() - began > budget.seconds):
            break

    return [sampler.timing for sampler in samplers]
