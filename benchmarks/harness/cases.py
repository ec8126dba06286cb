"""The cases. Each proves that the work was done, and returns numbers: times in microseconds."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, Final, TypeAlias

from harness.driver import Driver
from harness.measuring import Budget, Clock, Sampler, Timing, need, repeat, resident_kib
from harness.script import Calls, Kind, Script, make_functions

Numbers: TypeAlias = dict[str, Any]
MICRO: Final = 1e6
PROMPT: Final = "hello"
_THREADS: Final = 200
_CONSTRUCTIONS: Final = (5, 3000)  # at least, at most


def _functions(driver: Driver, count: int, kind: Kind = "async") -> list[Callable[..., Any]]:
    plain: dict[str, Kind] = {"async": "sync", "async_sleep": "sync_sleep"}
    return make_functions(count, plain.get(kind, kind) if driver.sync_only else kind)


def _numbers(timing: Timing, per: int = 1) -> Numbers:
    return {
        "wall_us": timing.wall / per * MICRO,
        "cpu_us": timing.cpu / per * MICRO,
        "total_ms": timing.wall * 1e3,
        "repetitions": timing.repetitions,
        "calls": timing.calls,
    }


def _sampler(
    driver: Driver,
    tools: list[Any],
    script: Callable[[], Script],
    calls: int,
    history: Sequence[Any] = (),
    again: Any = None,
) -> Sampler:
    """Times one invocation with so many tool calls and a final text, on fresh agents or on one again and again."""

    def check(answer: str) -> None:
        need(Calls.count == calls, f"{Calls.count} tool calls, not {calls}")
        need("tok" in (answer or ""), f"the final text is {answer!r}")

    return Sampler(
        driver,
        lambda: driver.agent(driver.model(script()), tools, history) if again is None else again,
        lambda agent: driver.run(agent, PROMPT),
        check,
    )


async def construct(driver: Driver, tools: int = 1, seconds: float = 0.5) -> Numbers:
    """Constructing an agent, its tools being wrapped already."""
    functions = _functions(driver, tools)
    with Clock() as wrapping:
        wrapped = driver.tools(functions)

    model = driver.model(Script())
    agent = driver.agent(model, wrapped)  # the first one builds what later ones share
    gc.collect()
    least, most = _CONSTRUCTIONS
    walls: list[float] = []
    began, cpu_began = time.perf_counter(), time.process_time()
    while len(walls) < least or (time.perf_counter() - began < seconds and len(walls) < most):
        start = time.perf_counter()
        agent = driver.agent(model, wrapped)
        walls.append(time.perf_counter() - start)

    cpu = (time.process_time() - cpu_began) / len(walls)
    Calls.count = 0
    await driver.prepare(agent)
    await driver.run(agent, PROMPT)
    need(Calls.count == 1, "the constructed agent called no tool")
    return {
        "wall_us": median(walls) * MICRO,
        "cpu_us": cpu * MICRO,
        "wrap_tool_us": wrapping.wall / tools * MICRO,
        "repetitions": len(walls),
        "calls": Calls.count,
    }


async def memory(driver: Driver, tools: int = 1, count: int = 1000) -> Numbers:
    """KiB an agent that has not run: resident, and traced on a second batch. Wants a fresh process."""
    wrapped = driver.tools(_functions(driver, tools))
    model = driver.model(Script())
    kept = [driver.agent(model, wrapped) for _ in range(10)]
    gc.collect()
    before = resident_kib()
    kept += [driver.agent(model, wrapped) for _ in range(count)]
    gc.collect()
    after = resident_kib()
    traced = max(50, count // 5)
    tracemalloc.start()
    traced_before = tracemalloc.get_traced_memory()[0]
    kept += [driver.agent(model, wrapped) for _ in range(traced)]
    gc.collect()
    traced_after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    Calls.count = 0
    await driver.prepare(kept[-1])
    await driver.run(kept[-1], PROMPT)
    need(Calls.count == 1, "the constructed agent called no tool")
    return {
        "resident_kib_per_agent": (after - before) / count,
        "traced_kib_per_agent": (traced_after - traced_before) / 1024 / traced,
        "agents": len(kept),
        "calls": Calls.count,
    }


async def cycle(driver: Driver, n: int = 10, kind: Kind = "async", seconds: float = 0.5) -> Numbers:
    """One invocation: n model turns with one tool call each, then the final text. Per cycle."""
    tools = driver.tools(_functions(driver, 1, kind))
    (timing,) = await repeat(Budget(seconds), _sampler(driver, tools, lambda: Script(cycles=n), n))
    return _numbers(timing, n)


async def growth(driver: Driver, messages: int = 100, k: int = 20, seconds: float = 1.0) -> Numbers:
    """One more cycle in an invocation after so many messages: (1 + k cycles) - (1 cycle), by k."""
    tools = driver.tools(_functions(driver, 1))
    history = driver.history(messages)
    budget = Budget(seconds, most=150)
    one, many = await repeat(
        budget,
        _sampler(driver, tools, lambda: Script(cycles=1), 1, history),
        _sampler(driver, tools, lambda: Script(cycles=1 + k), 1 + k, history),
    )
    return {
        "wall_us": (many.wall - one.wall) / k * MICRO,
        "cpu_us": (many.cpu - one.cpu) / k * MICRO,
        "first_turn_cpu_us": one.cpu * MICRO,
        "repetitions": many.repetitions,
        "calls": one.calls + many.calls,
    }


async def later_turn(driver: Driver, messages: int = 100, seconds: float = 0.5) -> Numbers:
    """One more turn (prompt, tool call, result, text) of an agent that has run before, after so many messages."""
    tools = driver.tools(_functions(driver, 1))
    agent = driver.agent(driver.model(Script(cycles=1)), tools, driver.history(messages))
    sampler = _sampler(driver, tools, lambda: Script(cycles=1), 1, again=agent)
    (timing,) = await repeat(Budget(seconds, most=100), sampler)
    return _numbers(timing)


async def stream(driver: Driver, deltas: int = 10000, consumer: bool = True, seconds: float = 0.6) -> Numbers:
    """One text message of so many pieces, with somebody who takes each of them, or without. Per piece."""
    tools = driver.tools(_functions(driver, 1))

    def check_pieces(pieces: int) -> None:
        need(pieces >= deltas, f"{pieces} pieces, not {deltas}")

    def check_text(text: str) -> None:
        need(text.count("tok") == deltas, f"{text.count('tok')} pieces, not {deltas}")

    def make() -> Any:
        return driver.agent(driver.model(Script(cycles=0, deltas=deltas)), tools)

    sampler: Sampler
    if consumer:
        sampler = Sampler(driver, make, lambda agent: driver.stream(agent, PROMPT), check_pieces)
    else:
        sampler = Sampler(driver, make, lambda agent: driver.run(agent, PROMPT), check_text)

    (timing,) = await repeat(Budget(seconds, least=2, most=30), sampler)
    return {**_numbers(timing, deltas), "deltas": deltas}


async def parallel(driver: Driver, kind: Kind = "async_sleep", count: int = 100, seconds: float = 0.5) -> Numbers:
    """One model turn with so many calls of a tool that waits 10 ms."""
    tools = driver.tools(_functions(driver, 1, kind))
    sampler = _sampler(driver, tools, lambda: Script(cycles=1, calls=count), count)
    (timing,) = await repeat(Budget(seconds, least=2, most=10), sampler)
    return _numbers(timing)


async def concurrency(driver: Driver, agents: int = 1000, cycles: int = 5, latency: float = 0.02) -> Numbers:
    """So many agents at once in one event loop; ideal is (cycles + 1) x latency. Wants a fresh process."""
    tools = driver.tools(_functions(driver, 1))
    warm = driver.agent(driver.model(Script(cycles=1)), tools)
    await driver.prepare(warm)
    await driver.run(warm, PROMPT)
    crowd = [driver.agent(driver.model(Script(cycles=cycles, latency=latency)), tools) for _ in range(agents)]
    for agent in crowd:
        await driver.prepare(agent)

    runs: Callable[[Any], Awaitable[str]] = lambda agent: driver.run(agent, PROMPT)  # noqa: E731 - one of two
    if driver.sync_only:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
        runs = lambda agent: asyncio.to_thread(driver.run_sync, agent, PROMPT)  # noqa: E731

    gc.collect()
    before = resident_kib()
    Calls.count = 0
    with Clock() as clock:
        await asyncio.gather(*(runs(agent) for agent in crowd))

    need(Calls.count == agents * cycles, f"{Calls.count} tool calls, not {agents * cycles}")
    peak, ideal = resident_kib("VmHWM"), (cycles + 1) * latency
    return {
        "wall_us": clock.wall * MICRO,
        "cpu_us": clock.cpu * MICRO,
        "times_ideal": clock.wall / ideal,
        "peak_mib": peak / 1024,
        "growth_kib_per_agent": (peak - before) / agents,
        "calls": Calls.count,
    }
