"""Tools: the two executors (conformance 73 and 74)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import ConcurrentToolExecutor, SequentialToolExecutor, tool
from ropewalk_testing import use

PATIENCE = 30
"""Seconds after which a wait that should end at once is given up as failed."""


def test_the_sequential_executor_runs_in_order_one_at_a_time(ask, make_agent, tool_results):
    """Conformance 73."""
    log = []

    @tool
    async def step(name: str) -> str:
        """Steps."""
        log.append(f"{name} starts")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.append(f"{name} ends")
        return name

    @tool
    def block(name: str) -> str:
        """Steps in a thread."""
        log.append(f"{name} starts")
        log.append(f"{name} ends")
        return name

    uses = [use("step", {"name": "a"}), use("block", {"name": "b"}), use("step", {"name": "c"})]
    agent, _ = make_agent([uses, "ok"], tools=[step, block], tool_executor=SequentialToolExecutor())

    ask(agent, "go")

    assert log == ["a starts", "a ends", "b starts", "b ends", "c starts", "c ends"]
    assert [result["content"][0]["text"] for result in tool_results(agent.messages)] == ["a", "b", "c"]


@pytest.mark.parametrize("executor", [None, ConcurrentToolExecutor()], ids=["default", "given"])
def test_async_tools_overlap_and_answer_in_request_order(ask, make_agent, tool_results, executor):
    """Conformance 74."""
    here = {}

    @tool
    async def meet(me: str, other: str) -> str:
        """Waits until the other one is here too."""
        async with asyncio.timeout(PATIENCE):
            here.setdefault(me, asyncio.Event()).set()
            await here.setdefault(other, asyncio.Event()).wait()
            for _ in range(50 if me == "a" else 0):  # the first one ends last
                await asyncio.sleep(0)

        return me

    uses = [use("meet", {"me": "a", "other": "b"}, id="A"), use("meet", {"me": "b", "other": "a"}, id="B")]
    given = {"tool_executor": executor} if executor else {}
    agent, _ = make_agent([uses, "ok"], tools=[meet], **given)

    ask(agent, "go")

    assert [(r["toolUseId"], r["status"], r["content"]) for r in tool_results(agent.messages)] == [
        ("A", "success", [{"text": "a"}]),
        ("B", "success", [{"text": "b"}]),
    ]


def test_sync_tools_overlap_too(ask, make_agent, tool_results):
    """Conformance 74."""
    barrier = threading.Barrier(5)

    @tool
    def meet(name: str) -> str:
        """Waits for the four others."""
        barrier.wait(PATIENCE)
        return name

    agent, _ = make_agent([[use("meet", {"name": name}) for name in "abcde"], "ok"], tools=[meet])

    ask(agent, "go")

    assert [result["content"] for result in tool_results(agent.messages)] == [[{"text": name}] for name in "abcde"]


def test_one_failure_leaves_its_siblings_alone(ask, make_agent, tool_results):
    """Conformance 74."""

    @tool
    async def odd(n: int) -> str:
        """Refuses even numbers."""
        await asyncio.sleep(0)
        if n % 2 == 0:
            raise ValueError(f"{n} is even")

        return str(n)

    agent, _ = make_agent([[use("odd", {"n": n}) for n in range(6)], "ok"], tools=[odd])

    ask(agent, "go")

    assert [result["status"] for result in tool_results(agent.messages)] == ["error", "success"] * 3
