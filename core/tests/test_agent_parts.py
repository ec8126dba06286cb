"""What an agent does besides running: plugins that come later, its clone, closing, and what it says of itself."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, use

from ropewalk import Agent
from ropewalk.errors import AgentClosedError, ConcurrencyException, ModelError
from ropewalk.kits.aio.isolation import Isolated
from ropewalk.kits.aio.seam import Seam, current_seam, use_seam
from ropewalk.kits.suspension import Interrupt


def initialised(name, log):
    async def init_agent(self):
        log.append(name)

    return make_plugin(name, init_agent=init_agent)


@pytest.mark.parametrize("run_before", [False, True], ids=["before the first run", "between two runs"])
def test_each_plugin_is_initialised_once_whenever_it_comes(ask, run_before):
    log = []
    agent = Agent(model=FakeModel("one", "two", "three"), plugins=[initialised("a", log)])
    if run_before:
        ask(agent, "go")
        assert log == ["a"]

    agent.add_plugin(initialised("b", log))
    agent.add_plugin(initialised("c", log))
    ask(agent, "go")

    assert sorted(log) == ["a", "b", "c"]
    ask(agent, "go")
    assert sorted(log) == ["a", "b", "c"]


def test_a_plugin_that_comes_later_brings_its_tools(ask):
    tool = FakeTool("late")
    agent = Agent(model=FakeModel(use("late"), "done"))
    agent.add_plugin(make_plugin("tools", provide_tools=lambda self: [tool]))
    ask(agent, "go")

    assert (agent.tool_names, tool.calls) == (["late"], 1)


def test_an_agent_says_what_it_is():
    agent = Agent(model=FakeModel("hi"), name="ann")
    assert repr(agent) == "<Agent 'ann', 0 messages>"
    agent("go")
    assert repr(agent) == "<Agent 'ann', 2 messages>"


def test_the_system_prompt_is_read_as_it_was_written():
    agent = Agent(model=FakeModel())
    assert (agent.system_prompt, agent.system_prompt_content) == (None, None)
    agent.system_prompt = "be kind"
    assert (agent.system_prompt, agent.system_prompt_content) == ("be kind", [{"text": "be kind"}])
    agent.system_prompt = [{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]
    assert agent.system_prompt == "a\nb"
    assert agent.system_prompt_content == [{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]
    agent.system_prompt = None
    assert (agent.system_prompt, agent.system_prompt_content) == (None, None)


async def test_a_with_block_closes_the_agent_once_and_not_while_it_runs():
    closed = []

    async def on_close(self):
        closed.append(True)

    plugin = make_plugin(on_close=on_close)

    async def body(call):
        with pytest.raises(ConcurrencyException, match="cannot be closed while it runs"):
            await agent.aclose()

        return "still open"

    async with Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", body)], plugins=[plugin]) as agent:
        assert str(await agent.invoke_async("go")) == "done\n"
        assert closed == []

    await agent.aclose()
    assert closed == [True]
    with pytest.raises(AgentClosedError):
        await agent.invoke_async("go")


def test_a_with_block_of_synchronous_code_closes_too():
    with Agent(model=FakeModel("done")) as agent:
        agent("go")

    with pytest.raises(AgentClosedError):
        agent("go")


@pytest.mark.parametrize("kind", ["coroutine", "list"])
def test_a_model_whose_stream_is_no_stream_is_told_so(ask, kind):
    class Model:
        async def coroutine(self, request):
            return []

        def stream(self, request):
            return self.coroutine(request) if kind == "coroutine" else []

    with pytest.raises(ModelError, match=rf"stream\(\) returned {kind}, which is no async iterator"):
        ask(Agent(model=Model()), "go")


def test_a_seam_is_in_use_until_its_block_ends():
    before = current_seam()
    with use_seam(Seam()) as seam:
        assert current_seam() is seam is not before

    assert current_seam() is before


def test_a_question_is_plain_json():
    assert Interrupt("1", "ok?", {"x": 1}, "yes").to_dict() == {
        "id": "1",
        "name": "ok?",
        "reason": {"x": 1},
        "response": "yes",
    }


async def test_what_is_awaited_in_isolation_is_closed_with_whoever_awaits_it():
    closed = []

    async def waits():
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    inner = waits()

    async def outer():
        await Isolated(inner)

    waiting = outer()
    waiting.send(None)
    waiting.close()

    assert closed == [True]
    assert inner.cr_frame is None
