from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from ropewalk import (
    Agent,
    AgentClosedError,
    Denied,
    InvalidPromptError,
    MaxTokensReachedException,
    ModelThrottledException,
    Refuse,
    StructuredOutputException,
    current_run,
    hookimpl,
    tool,
)
from ropewalk.kits.hooks import discovery
from ropewalk_structured import OutputModelError
from ropewalk_testing import ScriptedModel, turn, use

GOOD = {"n": 1, "s": "x"}
BAD = {"s": "x"}


async def until_stalled(model):
    for _ in range(1_000):
        if model.stalled.is_set():
            return

        await asyncio.sleep(0)


def test_the_sync_method_fills_from_the_prompt_and_keeps_nothing(make_agent, pair):
    agent, model = make_agent([use("P", GOOD)], system_prompt="Read.")

    assert agent.structured_output(pair, "one x") == pair(n=1, s="x")
    assert agent.messages == []
    (request,) = model.requests
    assert request.messages == [{"role": "user", "content": [{"text": "one x"}]}]
    assert list(request.system) == [{"text": "Read."}]
    assert request.tool_choice == {"tool": {"name": "P"}}
    assert request.purpose == "structured_output"


async def test_the_history_is_read_and_left_as_it_was(make_agent, pair):
    agent, model = make_agent(["hello", use("P", GOOD), "still here"])
    await agent.invoke_async("hi")
    before = list(agent.messages)
    filled = await agent.structured_output_async(pair, "now fill")

    assert filled == pair(n=1, s="x")
    assert agent.messages == before
    assert [message["role"] for message in model.requests[1].messages] == ["user", "assistant", "user"]
    await agent.invoke_async("and?")
    assert len(model.requests[2].messages) == 3


async def test_without_a_prompt_the_history_is_what_there_is(make_agent, pair):
    agent, model = make_agent(["hello", use("P", GOOD)], structured_output_prompt="Fill it in.")
    await agent.invoke_async("hi")
    await agent.structured_output_async(pair)

    assert model.requests[1].messages[-1] == {"role": "user", "content": [{"text": "Fill it in."}]}
    assert len(agent.messages) == 2


async def test_neither_prompt_nor_history_is_refused(make_agent, pair):
    agent, model = make_agent([])
    with pytest.raises(ValueError, match="neither a prompt nor a history"):
        await agent.structured_output_async(pair)

    assert model.calls == 0


async def test_bad_input_is_refused_before_any_work(make_agent, pair):
    agent, model = make_agent(["hi"])
    with pytest.raises(OutputModelError):
        await agent.structured_output_async("P", "go")

    for prompt in ("", 3, [3]):
        with pytest.raises(InvalidPromptError):
            await agent.structured_output_async(pair, prompt)

    assert model.calls == 0


async def test_the_tools_of_the_agent_are_not_offered(make_agent, pair):
    @tool
    def add(a: int) -> int:
        """Adds."""
        return a

    agent, model = make_agent([use("add", {"a": 1}), use("P", GOOD)], tools=[add])
    assert await agent.structured_output_async(pair, "go") == pair(n=1, s="x")
    assert [[spec["name"] for spec in request.tool_specs] for request in model.requests] == [["P"], ["P"]]
    assert agent.tool_names == ["add"]


async def test_wrong_answers_are_corrected_and_then_an_error(make_agent, pair):
    agent, model = make_agent([use("P", BAD), use("P", "[1]"), use("P", GOOD)])
    assert await agent.structured_output_async(pair, "go") == pair(n=1, s="x")
    assert "Field 'n': Field required" in str(model.requests[1].messages[-1])

    agent, model = make_agent(lambda _: use("P", BAD))
    with pytest.raises(StructuredOutputException, match="after 3 attempts"):
        await agent.structured_output_async(pair, "go")

    assert model.calls == 3


async def test_a_model_that_takes_a_schema_is_held_to_it(make_agent, pair):
    agent, model = make_agent(['{"n": 1, "s": "x"}'], native=True)

    assert await agent.structured_output_async(pair, "go") == pair(n=1, s="x")
    assert model.requests[0].output_schema["type"] == "object"
    assert not model.requests[0].tool_specs


async def test_a_cut_answer_says_so(make_agent, pair):
    agent, _ = make_agent([turn("{", stop="max_tokens")])
    with pytest.raises(MaxTokensReachedException, match="P was cut"):
        await agent.structured_output_async(pair, "go")


async def test_the_agent_s_own_output_model_does_not_stand_in_the_way(make_agent, pair):
    agent, model = make_agent([use("list_P", {"value": [GOOD]})], structured_output_model=pair)

    assert await agent.structured_output_async(list[pair], "go") == [pair(n=1, s="x")]
    assert [spec["name"] for spec in model.requests[0].tool_specs] == ["list_P"]


# -- hooks, gates, retries -------------------------------------------------------------------------------------------


async def test_nothing_of_it_is_shown_to_followers_or_logged(make_agent, pair):
    seen = []

    class Log:
        name = "log"

        @hookimpl
        async def write_records(self, records):
            seen.extend(records)

        @hookimpl
        async def on_event(self, event):
            seen.append(event)

        @hookimpl
        def on_delta(self, event):
            seen.append(event)

    agent, _ = make_agent([use("P", GOOD)], plugins=[Log()])
    await agent.structured_output_async(pair, "go")

    assert seen == []


async def test_a_failed_model_call_is_retried_as_the_agent_s_are(make_agent, pair):
    class Once:
        name = "once"

        @hookimpl
        async def decide_retry(self, failure):
            return 0.0 if failure.attempt == 1 else None

    agent, model = make_agent([ModelThrottledException("slow down"), use("P", GOOD)], plugins=[Once()])
    assert await agent.structured_output_async(pair, "go") == pair(n=1, s="x")
    assert model.calls == 2


@pytest.mark.parametrize("moment", ["before_invocation", "before_model_call", "after_model_call"])
async def test_a_gate_keeps_it_from_being_filled(make_agent, pair, moment):
    class Gate:
        name = "gate"

        @hookimpl
        async def intervene(self, moment, subject):
            return Refuse("not now") if moment == wanted else None

    wanted = moment
    agent, model = make_agent(lambda _: use("P", GOOD), plugins=[Gate()])
    with pytest.raises(StructuredOutputException, match="DENIED: not now"):
        await agent.structured_output_async(pair, "go")

    assert model.calls == (1 if moment == "after_model_call" else 0)
    assert agent.messages == []


async def test_a_hook_may_refuse_the_call(make_agent, pair):
    class No:
        name = "no"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            return Denied("closed today")

    agent, _ = make_agent([], plugins=[No()])
    with pytest.raises(StructuredOutputException, match="the call was refused: closed today"):
        await agent.structured_output_async(pair, "go")


# -- beside a run ----------------------------------------------------------------------------------------------------


async def test_a_tool_may_use_it_while_the_agent_runs(make_agent, pair):
    filled = []

    @tool
    async def look() -> str:
        """Looks."""
        filled.append(await agent.structured_output_async(pair, "and now fill"))
        return "seen"

    agent, model = make_agent([use("look"), use("P", GOOD), "done"], tools=[look])
    result = await agent.invoke_async("go")

    assert str(result) == "done\n"
    assert filled == [pair(n=1, s="x")]
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user", "assistant"]
    assert model.requests[1].messages == [{"role": "user", "content": [{"text": "go"}, {"text": "and now fill"}]}]


async def test_cancel_ends_it_and_only_it(make_agent, pair):
    agent, model = make_agent([turn("so", stall=True), "hi"])
    task = asyncio.ensure_future(agent.structured_output_async(pair, "go"))
    await until_stalled(model)

    agent.cancel()
    with pytest.raises(StructuredOutputException, match="cancelled"):
        await task

    assert (await agent.invoke_async("go")).stop_reason == "end_turn"


async def test_a_task_that_is_cancelled_from_outside_stays_cancelled(make_agent, pair):
    agent, model = make_agent([turn("so", stall=True), "hi"])
    task = asyncio.ensure_future(agent.structured_output_async(pair, "go"))
    await until_stalled(model)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await agent.invoke_async("go")).stop_reason == "end_turn"


async def test_a_closed_agent_refuses(make_agent, pair):
    agent, _ = make_agent([])
    await agent.aclose()
    with pytest.raises(AgentClosedError):
        await agent.structured_output_async(pair, "go")


async def test_the_agent_is_freed_without_the_collector(pair):
    gc.collect()
    gc.disable()
    try:
        agent = Agent(ScriptedModel([use("P", GOOD)]), callback_handler=None)
        await agent.structured_output_async(pair, "go")
        gone = weakref.ref(agent)
        del agent
        await asyncio.sleep(0)

        assert gone() is None
    finally:
        gc.enable()


async def test_edits_of_the_messages_that_wait_are_read_too(make_agent, pair):
    agent, model = make_agent([use("P", GOOD)])
    agent.messages.append({"role": "user", "content": [{"text": "one x"}]})
    await agent.structured_output_async(pair)

    assert model.requests[0].messages == [{"role": "user", "content": [{"text": "one x"}]}]


def test_both_methods_have_an_owner():
    owners = discovery.registry().owners
    assert owners["structured_output"] == owners["structured_output_async"] == ("structured",)


# -- hooks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [False, True])
async def test_hooks_find_the_run_of_the_question_also_inside_a_tool_of_another_agent(make_agent, pair, inside):
    seen = []

    class Looking:
        name = "looking"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            seen.append(current_run().agent)
            return await call_next(invocation)

        @hookimpl
        async def around_model_call(self, request, call_next):
            seen.append(current_run().agent)
            return await call_next(request)

    agent, _ = make_agent([use("P", BAD), use("P", GOOD)], plugins=[Looking()])

    @tool
    async def fill() -> str:
        """Fills."""
        filled = await agent.structured_output_async(pair, "one x")
        seen.append(current_run().agent)
        return str(filled.n)

    if inside:
        caller, _ = make_agent([use("fill"), "done"], tools=[fill])
        await caller.invoke_async("go")
        assert seen.pop() is caller
    else:
        await agent.structured_output_async(pair, "one x")
        with pytest.raises(RuntimeError, match="no agent runs here"):
            current_run()

    assert len(seen) == 3
    assert all(each is agent for each in seen)
