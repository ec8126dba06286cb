from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk.kits.aio.locks import Lock


async def until(lock, count):
    for _ in range(1000):
        if len(lock._tickets) == count:
            return

        await asyncio.sleep(0.001)

    raise TimeoutError


async def test_first_come_first_served():
    lock, order = Lock(), []

    async def take(name):
        async with lock:
            order.append(name)
            await asyncio.sleep(0)
            assert lock.locked()

    await asyncio.gather(*(take(name) for name in "abc"))
    assert order == ["a", "b", "c"]
    assert not lock.locked()


@pytest.mark.parametrize("called_up", [False, True])
async def test_who_is_cancelled_while_waiting_passes_the_turn_on(called_up):
    lock = Lock()

    async def take():
        async with lock:
            return "had it"

    async with lock:
        tasks = [asyncio.create_task(take()) for _ in range(2)]
        await until(lock, 2)
        if not called_up:
            tasks[0].cancel()
            await asyncio.sleep(0)

    tasks[0].cancel()
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1] == "had it"
    assert not lock.locked()


async def test_who_gives_up_waiting_does_not_let_anybody_in():
    lock, inside = Lock(), []

    async def take():
        async with lock:
            inside.append(True)

    async with lock:
        first, second = (asyncio.create_task(take()) for _ in range(2))
        await until(lock, 2)
        first.cancel()
        for _ in range(5):
            await asyncio.sleep(0)

        assert (inside, lock.locked(), len(lock._tickets)) == ([], True, 1)

    await second
    assert (inside, lock.locked()) == ([True], False)


async def test_a_coroutine_that_is_thrown_away_leaves_the_queue():
    lock = Lock()
    async with lock:
        waiting = lock.__aenter__()
        waiting.send(None)
        waiting.close()

    assert not lock.locked()


async def test_a_waiter_whose_loop_is_closed_is_passed_over():
    lock = Lock()

    def wait_a_little():
        loop = asyncio.new_event_loop()
        task = loop.create_task(lock.__aenter__())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        return task

    async with lock:
        task = await asyncio.to_thread(wait_a_little)

    assert not lock.locked()
    task._log_destroy_pending = False


def test_it_holds_between_event_loops():
    lock, inside, most = Lock(), 0, 0
    start = threading.Barrier(4)

    async def work():
        nonlocal inside, most
        for _ in range(50):
            async with lock:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

    def thread():
        start.wait(10)
        asyncio.run(asyncio.wait_for(work(), 30))

    threads = [threading.Thread(target=thread) for _ in range(4)]
    for each in threads:
        each.start()

    for each in threads:
        each.join(60)

    assert not any(each.is_alive() for each in threads)
    assert most == 1
    assert not lock.locked()
