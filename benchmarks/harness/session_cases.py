"""What keeping a session costs: a turn beside one without, late turns beside early ones, opening one."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

from harness.cases import MICRO, PROMPT, Numbers
from harness.driver import Driver
from harness.measuring import Clock, need
from harness.script import Script

_SPAN: Final = 100
_OPENINGS: Final = 5


def _size(folder: str) -> int:
    return sum(Path(root, name).stat().st_size for root, _, names in os.walk(folder) for name in names)


async def _turn(driver: Driver, agent: Any) -> float:
    with Clock() as clock:
        answer = await driver.run(agent, PROMPT)

    need("tok" in (answer or ""), f"the final text is {answer!r}")
    return clock.cpu


async def session_turn(driver: Driver, turns: int = 1000) -> Numbers:
    """Turns without a tool (prompt, text), in turn on an agent with a store and on one without."""
    kept: list[float] = []
    plain: list[float] = []
    sizes: list[int] = []
    with tempfile.TemporaryDirectory(prefix=f"bench-{driver.name}-") as folder:
        store = await driver.open_store(folder)
        agent = driver.agent(driver.model(Script(cycles=0)), [], store=store)
        without = driver.agent(driver.model(Script(cycles=0)), [], store=await driver.open_memory())
        for each in (agent, without):
            await driver.prepare(each)

        for _ in range(turns + 1):
            kept.append(await _turn(driver, agent))
            plain.append(await _turn(driver, without))
            sizes.append(_size(folder))

        need(sizes[-1] > sizes[0], "nothing was stored")
        await driver.close_store(store)

    span = min(_SPAN, turns // 3)
    early, late = slice(span, 2 * span), slice(-span, None)
    more = [after - before for before, after in itertools.pairwise(sizes)]
    return {
        "cpu_us": median(kept[late]) * MICRO,
        "without_cpu_us": median(plain[late]) * MICRO,
        "extra_cpu_us": (median(kept[late]) - median(plain[late])) * MICRO,
        "cpu_late_to_early": median(kept[late]) / median(kept[early]),
        "bytes_late_to_early": sum(more[late]) / max(sum(more[early]), 1),
        "calls": 0,
    }


async def session_open(driver: Driver, messages: int = 10_000) -> Numbers:
    """Opening a conversation of so many messages, and going on with it."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{driver.name}-") as folder:
        store = await driver.open_store(folder)
        agent = driver.agent(driver.model(Script(cycles=0)), [], store=store)
        await driver.prepare(agent)
        for _ in range(messages // 2):
            await _turn(driver, agent)

        walls: list[float] = []
        cpus: list[float] = []
        for _ in range(_OPENINGS):
            with Clock() as clock:
                opened = driver.agent(driver.model(Script(cycles=0)), [], store=store)
                await driver.prepare(opened)

            walls.append(clock.wall)
            cpus.append(clock.cpu)
            need(len(getattr(opened, "messages", ())) == messages, f"not {messages} messages are there again")

        await driver.close_store(store)

    return {"wall_us": median(walls) * MICRO, "cpu_us": median(cpus) * MICRO, "calls": 0}
