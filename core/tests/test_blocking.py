"""Synchronous calls: from anywhere, nested, interrupted by ctrl-C, after a fork; they never wait for themselves."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, parallel, results_of, use

from ropewalk import Agent
from ropewalk.kits.aio.blocking import _Call, held_here, run_blocking


def nested(depth, width=1):
    """An agent whose synchronous tool calls agents, `depth` levels down, `width` at once."""
    if depth == 0:
        return Agent(model=FakeModel("bottom"))

    def ask(call):
        return str(nested(depth - 1, width)("go")).strip()

    model = FakeModel([use("ask") for _ in range(width)], f"level {depth}")
    return Agent(model=model, tools=[FakeTool("ask", ask)], plugins=[parallel()])


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (3, 1), (1, 6), (3, 3), (6, 1)])
def test_synchronous_tools_that_call_agents_never_wait_for_themselves(depth, width):
    agent = nested(depth, width)

    assert str(agent("go")) == f"level {depth}\n"
    expected = "bottom" if depth == 1 else f"level {depth - 1}"
    assert list(results_of(agent.messages).values()) == [expected] * width


async def test_a_call_inside_a_running_loop_works_and_so_do_its_tools():
    assert str(nested(3, 2)("go")) == "level 3\n"


def test_a_synchronous_callback_may_call_an_agent_that_has_one_too():
    said = []

    def agent_with_callback(depth):
        def on_delta(self, event):
            if depth and hasattr(event, "text"):
                said.append((depth, str(agent_with_callback(depth - 1)("go"))))

        return Agent(model=FakeModel(f"at {depth}"), plugins=[make_plugin(on_delta=on_delta)])

    assert str(agent_with_callback(4)("go")) == "at 4\n"
    assert sorted(said) == [(n, f"at {n - 1}\n") for n in range(1, 5)]


def test_many_threads_call_many_agents():
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: str(nested(n % 3)("go")), range(60)))

    assert answers == [("bottom\n", "level 1\n", "level 2\n")[n % 3] for n in range(60)]


def test_all_calls_share_one_loop():
    loops = set()

    async def where(call):
        loops.add(asyncio.get_running_loop())

    for _ in range(3):
        Agent(model=FakeModel(use("where"), "x"), tools=[FakeTool("where", where)])("go")

    assert len(loops) == 1


def test_a_task_of_a_tool_that_exits_does_not_take_the_loop_with_it():
    async def exits():
        raise SystemExit(7)

    async def careless(call):
        task = asyncio.create_task(exits())
        await asyncio.wait([task])
        return type(task.exception()).__name__

    agent = Agent(
        model=FakeModel(use("careless", tool_use_id="T"), "fine", "and on"), tools=[FakeTool("careless", careless)]
    )

    assert str(agent("go")) == "fine\n"
    assert results_of(agent.messages)["T"] == "SystemExit"
    assert str(agent("go")) == "and on\n"


# -- in processes of their own -----------------------------------------------------------------------------------

PRELUDE = """
import asyncio, os, signal, sys, threading, time
sys.path.insert(0, {tests!r})
from kernel_fakes import *
from ropewalk import Agent
from ropewalk.kits.aio.blocking import _Call

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored
is_ready = threading.Event()

def ready():
    print("ready", flush=True)
    is_ready.set()

class Silent:
    async def stream(self, request):
        ready()
        await asyncio.sleep(60)
        yield {{}}
"""
INTERRUPTED = {
    "a silent model": "Agent(model=Silent())('go')",
    "a synchronous tool": """
        def stuck(call):
            ready()
            time.sleep(60)

        Agent(model=FakeModel(use('stuck')), tools=[FakeTool('stuck', stuck)])('go')
    """,
    "an asynchronous tool": """
        async def stuck(call):
            ready()
            await asyncio.sleep(60)

        Agent(model=FakeModel(use('stuck')), tools=[FakeTool('stuck', stuck)])('go')
    """,
    "an agent in a synchronous tool": """
        child = Agent(model=Silent())
        Agent(model=FakeModel(use('ask')), tools=[FakeTool('ask', lambda call: str(child('go')))])('go')
    """,
    "an agent in a callback": """
        child = Agent(model=Silent())

        def on_delta(self, event):
            child('go')

        Agent(model=FakeModel('x'), plugins=[make_plugin(on_delta=on_delta)])('go')
    """,
    "a call inside a running loop": """
        async def main():
            Agent(model=Silent())('go')

        asyncio.run(main())
    """,
    "an awaited call": "asyncio.run(Agent(model=Silent()).invoke_async('go'))",
    "a stream": "asyncio.run(collect(Agent(model=Silent()), 'go'))",
}


def script(body):
    return dedent(PRELUDE).format(tests=str(Path(__file__).parent)) + dedent(body)


def started(body):
    environment = {**os.environ, "ROPEWALK_PLUGINS": "none"}
    return subprocess.Popen(
        [sys.executable, "-c", script(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize("body", INTERRUPTED.values(), ids=INTERRUPTED)
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends(body):
    process = started(body)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=15)  # it takes about a second; this is not a measurement
    finally:
        process.kill()
        process.wait()

    assert process.returncode in (-signal.SIGINT, 130, 1)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "never retrieved" not in errors
    assert "never awaited" not in errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_after_fork_calls_agents_on_loops_and_threads_of_its_own():
    process = started(
        """
        def make():
            return Agent(model=FakeModel(use('t'), 'fine'), tools=[FakeTool('t', lambda call: 'ok')])

        def fork(call):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = 0 if str(make()('go')) == 'fine\\n' else 2
                finally:
                    os._exit(code)

            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        make()('go')
        print(fork(None))
        agent = Agent(model=FakeModel(use('fork', tool_use_id='T'), 'done'), tools=[FakeTool('fork', fork)])
        agent('go')
        print(results_of(agent.messages)['T'])
        print(str(make()('go')).strip())
        """
    )
    output, errors = process.communicate(timeout=30)

    assert output.split() == ["0", "0", "fine"], errors


def test_a_program_that_leaves_agents_running_ends_quietly():
    process = started(
        """
        threading.Thread(target=lambda: Agent(model=Silent())('go'), daemon=True).start()
        is_ready.wait(15)
        """
    )
    output, errors = process.communicate(timeout=20)

    assert (process.returncode, output) == (0, "ready\n")
    assert "Traceback" not in errors


def test_worker_threads_are_reused():
    before = threading.active_count()
    for _ in range(20):
        Agent(model=FakeModel(use("t"), "x"), tools=[FakeTool("t", lambda call: "ok")])("go")

    assert threading.active_count() <= before + 3


def test_the_error_of_a_call_that_nobody_waits_for_any_more_leads_to_nothing():
    class MarkedError(Exception):
        pass

    async def fail():
        raise MarkedError

    gone = []

    async def settled():
        call = _Call()
        await call.settle(fail())
        gone.append(weakref.ref(call.error))

    gc.collect()
    gc.disable()
    try:
        asyncio.run(settled())
        assert gone[0]() is None
    finally:
        gc.enable()


async def test_a_synchronous_call_tells_what_is_called_which_loops_it_holds():
    here = asyncio.get_running_loop()

    async def look():
        later = asyncio.create_task(look_later())
        return held_here(), run_blocking(look_further, lambda: None), later

    async def look_further():
        return held_here(), asyncio.get_running_loop()

    async def look_later():
        await asyncio.to_thread(over.wait, 5)
        return held_here()

    over = threading.Event()
    assert held_here() == []
    held, (further, _), later = run_blocking(look, lambda: None)

    over.set()
    assert held == [here]
    assert further == [here, later.get_loop()]
    assert held_here() == []
    assert await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_result(later), later.get_loop())) == []


async def _result(task):
    return await task
