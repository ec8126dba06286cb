"""A long conversation with a durable store: what a turn costs as the store grows, and what resuming costs."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from harness.cases import MICRO, Numbers
from harness.driver import Driver
from harness.measuring import Clock, need
from harness.script import BODY, Calls, Script, make_functions

_MARKS: Final = (10, 100, 300, 1000, 3000)


def _disk(folder: str) -> tuple[int, int]:
    """Bytes and files below a folder."""
    size = files = 0
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if path.exists():  # a journal may go at any time
                size += path.stat().st_size
                files += 1

    return size, files


def _rows(folder: str) -> int | None:
    """All rows of all tables of the SQLite files in a folder; None when there are none."""
    rows = None
    for file in Path(folder).rglob("*.db"):
        database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
            count = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]  # noqa: S608 - its own names
            rows = (rows or 0) + count

        database.close()

    return rows


class _Conversation:
    """One conversation, and what was measured of it."""

    def __init__(self, driver: Driver, folder: str, store: Any, *, durable: bool) -> None:
        self._driver, self._folder, self._store, self._durable = driver, folder, store, durable
        self._tools = driver.tools(make_functions(1, "async"))
        self._agent: Any = None
        self._walls: list[float] = []
        self._cpus: list[float] = []
        self._last: tuple[int, int] = (0, 0)  # turn and bytes at the last mark

    async def open(self) -> Any:
        agent = self._driver.agent(self._driver.model(Script(cycles=1)), self._tools, store=self._store)
        await self._driver.prepare(agent)
        return agent

    async def turn(self, number: int) -> None:
        if self._agent is None:
            self._agent = await self.open()

        Calls.count = 0
        with Clock() as clock:
            await self._driver.run(self._agent, f"question {number}: {BODY}")

        need(Calls.count == 1, f"turn {number}: {Calls.count} tool calls")
        self._walls.append(clock.wall)
        self._cpus.append(clock.cpu)

    async def mark(self, number: int) -> Numbers:
        last = max(5, min(number // 5, 50))
        size, files = _disk(self._folder)
        turn_before, size_before = self._last
        self._last = (number, size)
        numbers: Numbers = {
            "wall_us": median(self._walls[-last:]) * MICRO,
            "cpu_us": median(self._cpus[-last:]) * MICRO,
            "bytes": size,
            "files": files,
            "bytes_per_turn": (size - size_before) / max(number - turn_before, 1),
        }
        if self._durable:
            numbers["rows"] = _rows(self._folder)
            with Clock() as clock:
                resumed = await self.open()
                await self._driver.run(resumed, f"resumed {number}: {BODY}")

            numbers["resume_cpu_us"] = clock.cpu * MICRO
            self._agent = resumed if self._driver.resume_continues else self._agent

        return numbers


async def persist(driver: Driver, turns: int = 1000, store: bool = True, seconds: float = 60.0) -> Numbers:
    """So many turns (user, tool call, tool result, text), each a run on the same agent, until the time is up."""
    marks: dict[int, Numbers] = {}
    with tempfile.TemporaryDirectory(prefix=f"bench-{driver.name}-") as folder:
        opened = await (driver.open_store(folder) if store else driver.open_memory())
        conversation = _Conversation(driver, folder, opened, durable=store)
        began = time.perf_counter()
        for number in range(1, turns + 1):
            await conversation.turn(number)
            late = time.perf_counter() - began > seconds
            if number in _MARKS or late or number == turns:
                marks[number] = await conversation.mark(number)

            if late:
                break

        if store:
            await driver.close_store(opened)

    return {"marks": marks, "calls": max(marks)}
