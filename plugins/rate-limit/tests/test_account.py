"""The minute and the queue."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_rate_limit.account import Account, Waiter
from ropewalk_rate_limit.accounts import account_of, id_of
from ropewalk_rate_limit.rate import Rate

FORK = """
import asyncio, os, threading, warnings
from ropewalk_rate_limit import accounts
from ropewalk_rate_limit.rate import Rate

class Model:
    model_id = "m"

one = Rate(requests_per_minute=1)

async def use_up():
    await accounts.account_of(Model()).begin(one, 0)
    await accounts.account_of(Model()).begin(one, 0)

threading.Thread(target=lambda: asyncio.run(use_up()), daemon=True).start()
while accounts.account_of(Model()).waiting == 0:
    pass

print(accounts.account_of(Model()).waiting, flush=True)
accounts._lock.acquire()
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    asyncio.run(asyncio.wait_for(accounts.account_of(Model()).begin(one, 0), 20))
    print("went", flush=True)
    os._exit(0)

os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
TWO = Rate(requests_per_minute=2)
HUNDRED = Rate(tokens_per_minute=100)


async def begun(account, rate, *tokens):
    return [(await account.begin(rate, each)).began - 1_000 for each in tokens]


async def test_calls_within_the_limit_do_not_wait(clock):
    assert await begun(Account(), TWO, 0, 0) == [0, 0]
    assert clock.slept == []


async def test_no_sixty_seconds_hold_more_calls_than_allowed(clock):
    account = Account()
    times = await begun(account, TWO, 0)
    clock.seconds += 25
    times += await begun(account, TWO, 0, 0, 0, 0)
    assert times == [0, 25, 60, 85, 120]
    assert all(times[n + 2] - times[n] >= 60 for n in range(3))


async def test_no_sixty_seconds_hold_more_tokens_than_allowed(clock):
    account = Account()
    times = await begun(account, HUNDRED, 60)
    clock.seconds += 10
    times += await begun(account, HUNDRED, 40, 1, 59, 100)
    assert times == [0, 10, 60, 60, 120]


async def test_both_limits_hold_at_once(clock):
    both = Rate(requests_per_minute=3, tokens_per_minute=100)
    assert await begun(Account(), both, 90, 20, 20, 20, 20) == [0, 60, 60, 60, 120]


async def test_a_call_that_used_less_makes_room_at_once(stopped, settled):
    account = Account()
    first = await account.begin(HUNDRED, 100)
    second = asyncio.ensure_future(account.begin(HUNDRED, 50))
    await settled()
    assert not second.done()

    account.correct(first, 50)
    await settled()
    assert second.done()
    assert second.result().began == 1_000


async def test_a_call_that_used_more_makes_others_wait(clock):
    account = Account()
    first = await account.begin(HUNDRED, 10)
    account.correct(first, 500)
    assert await begun(account, HUNDRED, 1) == [60]


async def test_a_correction_after_the_minute_changes_nothing(clock):
    account = Account()
    first = await account.begin(HUNDRED, 10)
    clock.seconds += 61
    await begun(account, HUNDRED, 50)
    account.correct(first, 10_000)
    assert await begun(account, HUNDRED, 50) == [61]


async def test_who_comes_first_goes_first_even_when_a_later_one_would_fit(stopped, settled):
    account = Account()
    order = []

    async def call(name, tokens):
        await account.begin(HUNDRED, tokens)
        order.append(name)

    await account.begin(HUNDRED, 60)
    tasks = []
    for name, tokens in [("large", 80), ("small", 10), ("another", 10)]:
        tasks.append(asyncio.ensure_future(call(name, tokens)))
        await settled()

    assert order == []
    assert account.waiting == 3
    await stopped.move(59)
    assert order == []
    await stopped.move(1)
    assert order == ["large", "small", "another"]
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("place", [0, 1])
async def test_who_is_cancelled_gives_the_place_back(stopped, settled, place):
    account = Account()
    await account.begin(HUNDRED, 60)
    waiting = []
    for tokens in (80, 70, 30):
        waiting.append(asyncio.ensure_future(account.begin(HUNDRED, tokens)))
        await settled()

    waiting[place].cancel()
    await settled()
    assert [task.done() for task in waiting] == [place == 0, place == 1, False]
    assert account.waiting == 2
    await stopped.move(60)
    left = [task for task in waiting if not task.cancelled()]
    assert left[0].done()
    assert left[1].done() is (place == 0)  # 70 + 30 fit into one minute, 80 + 30 do not
    await stopped.move(60)
    assert left[1].done()


async def test_the_next_goes_at_once_when_the_one_before_is_cancelled_and_it_fits(stopped, settled):
    account = Account()
    await account.begin(HUNDRED, 60)
    large = asyncio.ensure_future(account.begin(HUNDRED, 80))
    await settled()
    small = asyncio.ensure_future(account.begin(HUNDRED, 40))
    await settled()
    assert not small.done()
    large.cancel()
    await settled()
    assert small.done()


async def test_each_caller_keeps_its_own_limit_on_what_all_have_used(clock):
    account = Account()
    assert await begun(account, Rate(requests_per_minute=10), 0, 0, 0) == [0, 0, 0]
    assert await begun(account, TWO, 0) == [60]


async def test_a_clock_that_fails_is_told(monkeypatch):
    class Broken(Seam):
        async def sleep(self, seconds):
            raise OSError("no time")

    with use_seam(Broken()):
        account = Account()
        await account.begin(Rate(requests_per_minute=1), 0)
        with pytest.raises(OSError, match="no time"):
            await account.begin(Rate(requests_per_minute=1), 0)

        assert account.waiting == 0


def test_threads_with_event_loops_of_their_own_share_the_minute(clock):
    account = Account()
    times, failures = [], []
    rate = Rate(requests_per_minute=5)

    def work():
        async def calls():
            times.extend([(await account.begin(rate, 0)).began for _ in range(10)])

        try:
            asyncio.run(asyncio.wait_for(calls(), 20))
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(30)

    times.sort()
    assert failures == []
    assert len(times) == 40
    assert all(times[n + 5] - times[n] >= 60 for n in range(35))


def test_a_waiter_whose_event_loop_was_closed_does_not_block_others(stopped):
    account = Account()
    one = Rate(requests_per_minute=1)

    async def leave():
        account._queue.append(Waiter(one, 0))

    async def come():
        return await asyncio.wait_for(account.begin(one, 0), 5)

    asyncio.run(leave())
    assert account.waiting == 1
    assert asyncio.run(come()).began == 1_000
    assert account.waiting == 0


def test_a_waiter_whose_event_loop_stands_still_does_not_block_others_and_goes_on_later(stopped):
    account = Account()
    one = Rate(requests_per_minute=1)
    still = asyncio.new_event_loop()
    try:
        still.run_until_complete(account.begin(one, 0))
        waiting = still.create_task(account.begin(one, 0))
        still.run_until_complete(asyncio.sleep(0))
        assert account.waiting == 1

        stopped.seconds += 60
        assert asyncio.run(asyncio.wait_for(account.begin(one, 0), 5)).began == 1_060

        stopped.seconds += 60
        account._wake_first()
        still.call_soon(stopped._sleepers[0][1].set_result, None)
        assert still.run_until_complete(asyncio.wait_for(waiting, 5)).began == 1_120
    finally:
        still.close()


def test_those_behind_find_out_that_the_event_loop_of_the_first_has_stopped(stopped, monkeypatch):
    monkeypatch.setattr("ropewalk_rate_limit.account._LOOK_SECONDS", 0.01)
    account = Account()
    one = Rate(requests_per_minute=1)
    first = asyncio.new_event_loop()
    behind = threading.Event()
    began = []

    async def come_second():
        call = asyncio.ensure_future(account.begin(one, 0))
        await asyncio.sleep(0)
        behind.set()
        began.append((await asyncio.wait_for(call, 20)).began)

    async def come_first():
        call = first.create_task(account.begin(one, 0))
        await asyncio.sleep(0)
        thread.start()
        await asyncio.to_thread(behind.wait, 20)
        return call

    thread = threading.Thread(target=lambda: asyncio.run(come_second()))
    try:
        asyncio.run(account.begin(one, 0))
        call = first.run_until_complete(come_first())
        assert account.waiting == 2
        stopped.seconds += 60
        thread.join(30)
        assert began == [1_060]
    finally:
        call.cancel()
        first.run_until_complete(first.shutdown_default_executor())
        first.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_waits_for_nobody_of_its_parent():
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False, env={**os.environ}
    )
    assert (done.returncode, done.stdout.split()) == (0, ["1", "went"]), done.stderr


def test_one_model_id_is_one_account_and_an_object_without_one_its_own(clock):
    class Model:
        def __init__(self, **facts):
            vars(self).update(facts)

    class Small:
        __slots__ = ()

    assert account_of(Model(model_id="a")) is account_of(Model(config={"model_id": "a"}))
    assert account_of(Model(model_id="a")) is not account_of(Model(model_id="b"))
    nameless, small = Model(), Small()
    assert id_of(nameless) is None
    assert account_of(nameless) is account_of(nameless)
    assert account_of(nameless) is not account_of(Model())
    assert account_of(small) is account_of(small)


def test_another_clock_has_other_minutes():
    class Model:
        model_id = "a"

    with use_seam(Seam()):
        first = account_of(Model())

    with use_seam(Seam()):
        assert account_of(Model()) is not first
