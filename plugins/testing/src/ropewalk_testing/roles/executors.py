"""What every executor keeps."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from ropewalk import hookimpl
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.roles.common import Probe, Role, ended, make_agent, results_of, run, until, within
from ropewalk_testing.turns import use

COUNT = 5


class _Trips:
    """A hook that raises for one call."""

    name = "trips"

    @hookimpl
    async def around_tool_call(self, call: Any, call_next: Any) -> Any:
        """Raises before the second call."""
        if call.tool_use["toolUseId"] == "T1":
            raise LookupError("the hook tripped")

        return await call_next(call)


class _Order:
    """A hook that notes in which order the results come."""

    name = "order"

    def __init__(self) -> None:
        self.ids: list[str] = []

    @hookimpl
    async def around_tools(self, batch: Any, call_next: Any) -> Any:
        """Notes it."""
        done = await call_next(batch)
        self.ids = [result["toolUseId"] for result in done.results]
        return done


class ExecutorConformance(Role):
    """Tests that an executor (a plugin with `execute_tools`) passes. A subclass named `Test...` has `executor()`.

    Attributes:
        at_once: Whether it runs several calls of one message at the same time.
        most: How many at most; None for no limit that the tests would notice.
    """

    at_once: ClassVar[bool] = True
    most: ClassVar[int | None] = None

    def executor(self) -> Any:
        """Makes the executor; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a method executor() that makes the one under test")

    async def test_each_call_is_run_once_and_answered_in_order(self) -> None:
        """Whichever ends first."""
        release = [asyncio.Event() for _ in range(COUNT)]

        async def act(call: Any) -> None:
            place = int(call.tool_use["toolUseId"][1:])
            for _ in range(COUNT - place):
                await asyncio.sleep(0)

            release[place].set()

        tool, order = Probe("probe", act), _Order()
        agent = self.agent(tool, plugins=[order])
        await run(agent)

        assert order.ids == [f"T{n}" for n in range(COUNT)]
        assert sorted(tool.started) == [f"T{n}" for n in range(COUNT)]
        assert list(results_of(agent).items()) == [
            (f"T{n}", ("success", [{"text": f"answer to T{n}"}])) for n in range(COUNT)
        ]

    async def test_a_single_call_is_run(self) -> None:
        """The usual case."""
        tool = Probe("probe")
        agent = self.agent(tool, count=1)
        await run(agent)

        assert tool.started == ["T0"]
        assert results_of(agent) == {"T0": ("success", [{"text": "answer to T0"}])}

    async def test_how_many_run_at_once(self) -> None:
        """All of them, up to the limit; or one after the other, in the order of the request."""
        wanted = min(self.most or COUNT, COUNT) if self.at_once else 1
        tool = Probe("probe")

        async def act(_: Any) -> None:
            await until(lambda: tool.most >= wanted, f"no {wanted} calls run at once")
            await asyncio.sleep(0)

        tool.act = act
        await run(self.agent(tool))

        assert tool.most == wanted
        if wanted == 1:
            assert tool.started == [f"T{n}" for n in range(COUNT)]

    async def test_a_tool_that_fails_does_not_stop_the_others(self) -> None:
        """Each has its own result."""

        async def act(call: Any) -> None:
            if call.tool_use["toolUseId"] == "T1":
                raise ValueError("broken")

        agent = self.agent(Probe("probe", act))
        await run(agent)
        statuses = {use_id: status for use_id, (status, _) in results_of(agent).items()}

        assert statuses == {f"T{n}": "error" if n == 1 else "success" for n in range(COUNT)}

    async def test_what_a_hook_raises_goes_to_the_caller(self) -> None:
        """Once every call has its result."""
        tool = Probe("probe")
        agent = self.agent(tool, plugins=[_Trips()])
        with pytest.raises(LookupError, match="the hook tripped"):
            await within(agent.invoke_async("Go."))

        assert_valid_history(agent.messages)
        assert sorted(results_of(agent)) == [f"T{n}" for n in range(COUNT)]
        assert "T1" not in tool.started
        assert tool.running == 0

    async def test_a_question_keeps_what_the_others_came_to(self) -> None:
        """The run pauses, and goes on without running them again."""
        asked: list[Any] = []

        async def act(call: Any) -> None:
            if call.tool_use["toolUseId"] == "T1":
                asked.append(call.interrupt("sure?"))

        tool = Probe("probe", act)
        agent = self.agent(tool)
        paused = await run(agent)
        assert paused.stop_reason == "interrupt"
        before = [use_id for use_id in tool.started if use_id != "T1"]
        answer = {"interruptId": paused.interrupts[0].id, "response": "yes"}
        result = await run(agent, [{"interruptResponse": answer}])

        assert (result.stop_reason, asked) == ("end_turn", ["yes"])
        assert all(tool.started.count(use_id) == 1 for use_id in before)
        assert {status for status, _ in results_of(agent).values()} == {"success"}

    async def test_cancelling_ends_all(self) -> None:
        """The tools that run end, those not yet started do not start, and each use has a result."""
        tool = Probe("probe", _forever)
        agent = self.agent(tool)
        task = asyncio.ensure_future(run(agent))
        await until(lambda: tool.started, "no tool was started")
        agent.cancel()
        result = await ended(task)
        started = len(tool.started)
        await asyncio.sleep(0)
        assert result.stop_reason == "cancelled"
        assert sorted(results_of(agent)) == [f"T{n}" for n in range(COUNT)]
        assert (tool.running, len(tool.started)) == (0, started)

    async def test_a_caller_that_goes_away_leaves_nothing_running(self) -> None:
        """The task in which the agent was called is cancelled."""
        tool = Probe("probe", _forever)
        agent = self.agent(tool)
        task = asyncio.ensure_future(agent.invoke_async("Go."))
        await until(lambda: tool.started, "no tool was started")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ended(task)

        await until(lambda: not tool.running, "a tool runs on after its caller has gone")
        assert_valid_history(agent.messages)

    async def test_one_executor_serves_two_agents_at_once(self) -> None:
        """Each gets its own results."""
        executor, tools = self.executor(), [Probe("probe"), Probe("probe")]
        agents = [self.agent(tool, executor=executor) for tool in tools]
        await asyncio.gather(*[run(agent) for agent in agents])

        assert [sorted(tool.started) for tool in tools] == [[f"T{n}" for n in range(COUNT)]] * 2
        assert all(len(results_of(agent)) == COUNT for agent in agents)

    # -- their parts -----------------------------------------------------------------------------------------------

    def agent(self, tool: Probe, *, count: int = COUNT, executor: Any = None, plugins: Any = ()) -> Any:
        """An agent whose model asks for the tool so many times in one message."""
        uses = [use(tool.tool_name, {}, id=f"T{n}") for n in range(count)]
        return make_agent([uses, "done"], tools=[tool], plugins=[executor or self.executor(), *plugins])


async def _forever(_: Any) -> None:
    await asyncio.Event().wait()
