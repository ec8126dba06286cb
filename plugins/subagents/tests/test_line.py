from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from ropewalk.kits.aio.blocking import run_blocking
from ropewalk_subagents import line
from ropewalk_subagents.line import WouldNeverEndError, line_of


@pytest.fixture(autouse=True)
def nobody_is_left_waiting():
    yield
    assert line._waiting == []


@pytest.fixture
def agent(make_agent):
    return make_agent([])


async def test_calls_come_one_after_the_other_in_their_order(agent):
    log = []

    async def take(name):
        async with line_of(agent).turn(agent, ()):
            log.append(f"{name} in")
            await asyncio.sleep(0)
            log.append(f"{name} out")

    await asyncio.gather(*map(take, "abc"))

    assert log == ["a in", "a out", "b in", "b out", "c in", "c out"]


async def test_a_call_that_is_cancelled_while_it_waits_leaves_the_line(agent):
    log = []

    async def take(name):
        async with line_of(agent).turn(agent, ()):
            log.append(name)

    async with line_of(agent).turn(agent, ()):
        waiting = [asyncio.create_task(take(name)) for name in "ab"]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait([waiting[0]])

    await waiting[1]
    assert (waiting[0].cancelled(), log) == (True, ["b"])


async def test_a_call_that_is_cancelled_when_its_turn_has_come_passes_it_on(agent):
    log = []

    async def take(name):
        async with line_of(agent).turn(agent, ()):
            log.append(name)

    async with line_of(agent).turn(agent, ()):
        waiting = [asyncio.create_task(take(name)) for name in "ab"]
        await asyncio.sleep(0)

    waiting[0].cancel()  # called up, and not run since
    await asyncio.wait(waiting)
    assert (waiting[0].cancelled(), log) == (True, ["b"])


async def test_an_error_in_a_turn_ends_it(agent):
    with pytest.raises(ZeroDivisionError):
        async with line_of(agent).turn(agent, ()):
            raise ZeroDivisionError

    async with line_of(agent).turn(agent, ()):
        pass


def test_calls_from_several_event_loops_stand_in_one_line(agent):
    inside, most, lock = 0, 0, threading.Lock()

    async def take():
        nonlocal inside, most
        async with line_of(agent).turn(agent, ()):
            with lock:
                inside += 1
                most = max(most, inside)

            await asyncio.sleep(0.001)
            with lock:
                inside -= 1

    async def several():
        await asyncio.gather(*(take() for _ in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(4)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(30)

    assert not any(thread.is_alive() for thread in threads)
    assert most == 1


async def test_a_call_that_its_agent_waits_for_is_refused(agent):
    with pytest.raises(WouldNeverEndError):
        async with line_of(agent).turn(agent, (1, id(agent))):
            pass


async def test_two_agents_that_would_wait_for_one_another_are_told(make_agent):
    left, right = make_agent([]), make_agent([])
    both = asyncio.Barrier(2)
    outcomes = []

    async def take(first, second):
        async with line_of(first).turn(first, ()):
            await both.wait()
            try:
                async with line_of(second).turn(second, (id(first),)):
                    outcomes.append("answered")
            except WouldNeverEndError:
                outcomes.append("refused")

    await asyncio.gather(take(left, right), take(right, left))
    assert outcomes == ["refused", "answered"]


async def test_waiting_for_a_busy_agent_is_no_circle(make_agent):
    child, other = make_agent([]), make_agent([])
    answered = []

    async def take(wanted, callers):
        async with line_of(wanted).turn(wanted, callers):
            await asyncio.sleep(0)
            answered.append(callers)

    await asyncio.gather(take(child, (7,)), take(child, (7,)), take(other, (7, 8)), take(child, (7, id(other))))
    assert len(answered) == 4


def test_a_line_goes_with_its_agent(make_agent):
    agent = make_agent([])
    line_of(agent)
    gone = weakref.ref(agent)
    del agent
    gc.collect()

    assert gone() is None


@pytest.mark.parametrize("first", ["has the turn", "waits"])
async def test_a_call_whose_loop_stands_still_until_this_one_is_over_is_not_waited_for(agent, first):
    """A synchronous callback calls an agent that calls the sub-agent, which is busy in the callback's event loop."""

    async def take():
        async with line_of(agent).turn(agent, ()):
            return "had it"

    def hold_the_loop():
        return run_blocking(lambda: asyncio.wait_for(take(), 5), lambda: None)

    if first == "waits":
        async with line_of(agent).turn(agent, ()):
            waiting = asyncio.create_task(take())
            await asyncio.sleep(0)
            with pytest.raises(WouldNeverEndError):
                hold_the_loop()

        assert await waiting == "had it"
    else:
        async with line_of(agent).turn(agent, ()):
            with pytest.raises(WouldNeverEndError):
                hold_the_loop()

    assert hold_the_loop() == "had it"
