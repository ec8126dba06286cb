from __future__ import annotations

import asyncio
import gc
import json
import threading

import pytest

from ropewalk import (
    AfterToolCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    SequentialToolExecutor,
    ToolContext,
    current_run,
    hookimpl,
    tool,
)
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use


def answers(*pairs):
    return [{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in pairs]


def ask(name="scout", say="go", use_id="T1"):
    return use(name, {"input": say}, id=use_id)


def worker(*uses, says="found"):
    """A model that asks for the tools once a prompt, and answers when it has their results."""

    def model(request):
        return says if "toolResult" in request.messages[-1]["content"][-1] else list(uses)

    return ScriptedModel(model)


@pytest.fixture
def heard():
    return []


@pytest.fixture
def asks(heard):
    """A tool that asks."""

    @tool(context=True)
    def asks(of: str, tool_context: ToolContext) -> str:
        """Asks."""
        answer = tool_context.interrupt("approve", {"of": of})
        heard.append((of, answer))
        return f"{of}: {answer}"

    return asks


ASK_A = use("asks", {"of": "a"}, id="C1")
ASK_B = use("asks", {"of": "b"}, id="C2")


@pytest.fixture
def scout(make_agent, asks):
    return make_agent(worker(ASK_A), name="scout", tools=[asks])


# -- fresh copies ------------------------------------------------------------------------------------------------------


async def test_a_copy_that_waits_pauses_its_caller_and_another_copy_goes_on(make_agent, scout, heard, results_of):
    closed = []

    class Closing:
        name = "closing"

        @hookimpl
        async def on_close(self, agent):
            closed.append(agent)

    scout.add_plugin(Closing())
    agent = make_agent([ask(), "done"], tools=[scout])

    result = await agent.invoke_async("go")
    (question,) = result.interrupts
    assert (result.stop_reason, question.name, question.reason) == ("interrupt", "approve", {"of": "a"})
    assert question.id.startswith("v1:agent_as_tool:T1:v1:tool_call:C1:")
    assert len(closed) == 1

    assert str(await agent.invoke_async(answers((question, "yes")))) == "done\n"
    assert (heard, results_of(agent)) == ([("a", "yes")], [("success", "found")])
    assert (scout.model.calls, agent.model.calls) == (2, 2)
    assert len(closed) == 2
    assert (list(scout.messages), scout.suspension) == ([], None)
    assert_valid_history(agent.messages)


async def test_a_callback_of_a_sub_agent_asks_the_callers_caller(make_agent, heard, results_of):
    @tool
    def work() -> str:
        return "worked"

    scout = make_agent(worker(use("work", {}, id="C1")), name="scout", tools=[work])
    scout.add_hook(lambda event: heard.append(event.interrupt("tools?")), BeforeToolsEvent)
    scout.add_hook(lambda event: heard.append(event.interrupt("tool?")), BeforeToolCallEvent)
    agent = make_agent([ask(), "done"], tools=[scout])

    (first,) = (await agent.invoke_async("go")).interrupts
    (second,) = (await agent.invoke_async(answers((first, 1)))).interrupts
    await agent.invoke_async(answers((second, 2)))

    assert (first.name, second.name) == ("tools?", "tool?")
    assert heard == [1, 1, 2]
    assert results_of(agent) == [("success", "found")]


async def test_questions_reach_through_sub_agents_of_any_depth(make_agent, asks, heard):
    agent = make_agent(worker(ASK_A, ASK_B), name="level0", tools=[asks])
    for level in range(1, 6):
        asking = ask(f"level{level - 1}", use_id=f"T{level}")
        agent = make_agent(worker(asking, says=f"from {level}"), name=f"level{level}", tools=[agent])

    a, b = sorted((await agent.invoke_async("go")).interrupts, key=lambda each: each.reason["of"])  # asked at once
    assert a.id.startswith("".join(f"v1:agent_as_tool:T{level}:" for level in range(5, 0, -1)) + "v1:tool_call:C1:")

    (still,) = (await agent.invoke_async(answers((b, "for b")))).interrupts
    assert still.id == a.id
    assert str(await agent.invoke_async(answers((a, "for a")))) == "from 5\n"
    assert heard == [("b", "for b"), ("a", "for a")]


@pytest.mark.parametrize("sequential", [False, True])
async def test_a_call_without_an_answer_yet_does_not_run_its_agent(make_agent, asks, heard, results_of, sequential):
    runs = []

    class Counting:
        name = "counting"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            runs.append(invocation.resumed)
            return await call_next(invocation)

    model = worker(ASK_A)
    scout = make_agent(model, name="scout", tools=[asks], plugins=[Counting()])
    parameters = {"tool_executor": SequentialToolExecutor()} if sequential else {}
    agent = make_agent([[ask(use_id="T1"), ask(use_id="T2")], "done"], tools=[scout], **parameters)

    questions = (await agent.invoke_async("go")).interrupts
    for _ in range(2):
        questions = (await agent.invoke_async([])).interrupts

    assert (len(questions), model.calls) == (1, 1) if sequential else (2, 2)
    while questions:
        questions = (await agent.invoke_async(answers((questions[-1], "yes")))).interrupts

    assert (heard, model.calls, sorted(runs)) == ([("a", "yes")] * 2, 4, [False, False, True, True])
    assert results_of(agent) == [("success", "found")] * 2


@pytest.mark.parametrize("depth", [1, 4])
async def test_what_copies_know_survives_as_json(make_agent, asks, heard, depth):
    @tool(context=True)
    def picture(tool_context: ToolContext) -> dict:
        """Shows."""
        tool_context.agent.state.set("seen", [1, 2])
        image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\x00"}}}
        return {"toolUseId": "x", "status": "success", "content": [image]}

    seen = []

    def make():
        def model(request):
            last = request.messages[-1]["content"][0]
            if "toolResult" not in last:
                return use("picture", {}, id="P1")

            return ASK_A if last["toolResult"]["toolUseId"] == "P1" else "found"

        scout = make_agent(ScriptedModel(model), name="scout", tools=[picture, asks], state={"seen": []})

        class Reader:
            name = "reader"

            @hookimpl
            async def around_tools(self, batch, call_next, agent):
                content = [block for message in agent.messages for block in message["content"]]
                images = [block["toolResult"]["content"] for block in content if "toolResult" in block]
                seen.append((agent.state.get("seen"), images))
                return await call_next(batch)

        scout.add_plugin(Reader())
        agent = make_agent(worker(ask(), says="done"), name="level1", tools=[scout])
        for level in range(2, depth + 1):
            agent = make_agent(worker(ask(f"level{level - 1}"), says="done"), name=f"level{level}", tools=[agent])

        return agent

    agent = make()
    result = await agent.invoke_async("go")
    before = seen[-1]
    saved = json.loads(json.dumps(agent.take_snapshot(preset="session").to_dict()))

    other = make()
    other.load_snapshot(Snapshot.from_dict(saved))
    assert str(await other.invoke_async(answers((result.interrupts[0], "yes")))) == "done\n"

    assert seen[-1] == before
    assert before[0] == [1, 2]
    assert before[1][0][0]["image"]["source"]["bytes"] == b"\x89PNG\x00"
    assert heard == [("a", "yes")]


async def test_a_call_that_is_repeated_begins_anew_and_asks_anew(make_agent, scout, heard, results_of):
    agent = make_agent([ask(), "done"], tools=[scout])
    ends = []

    def again(event):
        ends.append(event.result["content"][0]["text"])
        event.retry = len(set(ends)) == len(ends) == 1 or heard == [("a", "first")]

    agent.add_hook(again, AfterToolCallEvent)
    (first,) = (await agent.invoke_async("go")).interrupts
    (second,) = (await agent.invoke_async(answers((first, "first")))).interrupts
    assert first.id != second.id

    assert (await agent.invoke_async([])).interrupts == [second]
    assert str(await agent.invoke_async(answers((second, "second")))) == "done\n"

    assert heard == [("a", "first"), ("a", "second")]
    assert (scout.model.calls, results_of(agent)) == (4, [("success", "found")])


async def test_the_invocation_state_is_the_one_of_the_call_that_goes_on(make_agent):
    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        """Asks."""
        return f"{tool_context.interrupt('approve')} by {tool_context.invocation_state['user']}"

    scout_model = worker(use("asks", {}, id="C1"))
    agent = make_agent([ask(), "done"], tools=[make_agent(scout_model, name="scout", tools=[asks])])
    result = await agent.invoke_async("go", invocation_state={"user": "ann"})

    await agent.invoke_async(answers((result.interrupts[0], "yes")), invocation_state={"user": "bob"})

    told = scout_model.requests[-1].messages[-1]["content"][0]["toolResult"]["content"]
    assert told == [{"text": "yes by bob"}]


async def test_a_sub_agent_that_lost_its_tool_says_so(make_agent, asks, heard, results_of, caplog):
    scout = make_agent(worker(ASK_A), name="scout", tools=[asks])
    agent = make_agent([ask(), "done"], tools=[scout])
    result = await agent.invoke_async("go")
    scout.tool_registry.remove("asks")

    await agent.invoke_async(answers((result.interrupts[0], "yes")))

    ((status, text),) = results_of(agent)
    assert status == "error"
    assert "could not go on with the answer" in text
    assert "no tool 'asks' any more" in text
    assert "the answer for sub-agent scout is lost" in caplog.text
    assert heard == []


@pytest.mark.parametrize("preserve_context", [False, True])
def test_in_a_direct_call_nobody_can_answer(make_agent, scout, heard, preserve_context):
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=preserve_context)])

    with pytest.raises(RuntimeError, match="'scout' asks approve, which nobody can answer in a direct call"):
        agent.tool.scout(input="go")

    assert (heard, agent.suspension) == ([], None)
    assert len(agent("go").interrupts) == 1  # a kept conversation is free again


async def test_followers_see_which_call_of_which_agent_waits(make_agent, scout):
    agent = make_agent([ask(), "done"], tools=[scout])

    events = [event async for event in agent.stream_async("go")]

    (own,) = [event["tool_interrupt_event"] for event in events if "tool_interrupt_event" in event]
    assert own["tool_use"]["toolUseId"] == "T1"
    inner = [event["tool_stream_event"]["data"] for event in events if "tool_stream_event" in event]
    (below,) = [event["tool_interrupt_event"] for event in inner if "tool_interrupt_event" in event]
    assert below["tool_use"]["toolUseId"] == "C1"


# -- a kept conversation -----------------------------------------------------------------------------------------------


async def test_an_agent_that_keeps_its_conversation_goes_on_itself(make_agent, scout, heard, results_of):
    agent = make_agent([ask(say="one"), ask(say="two", use_id="T2"), "done"])
    agent.tool_registry.add(scout.as_tool(preserve_context=True))

    (one,) = (await agent.invoke_async("go")).interrupts
    assert scout.suspension is not None
    (two,) = (await agent.invoke_async(answers((one, 1)))).interrupts
    await agent.invoke_async(answers((two, 2)))

    assert heard == [("a", 1), ("a", 2)]
    assert [m["content"][0]["text"] for m in scout.messages if "text" in m["content"][0]] == [
        "one", "found", "two", "found",
    ]  # fmt: skip
    assert scout.suspension is None
    assert_valid_history(scout.messages)
    assert results_of(agent) == [("success", "found")] * 2


async def test_calls_of_one_message_wait_with_the_one_that_asks(make_agent, scout, heard, results_of):
    agent = make_agent([[ask(say="one", use_id="T1"), ask(say="two", use_id="T2")], "done"])
    agent.tool_registry.add(scout.as_tool(preserve_context=True))

    (one,) = (await agent.invoke_async("go")).interrupts
    assert one.id.startswith("v1:agent_as_tool:T1:")
    assert (await agent.invoke_async([])).interrupts == [one]
    (two,) = (await agent.invoke_async(answers((one, 1)))).interrupts
    assert two.id.startswith("v1:agent_as_tool:T2:")
    await agent.invoke_async(answers((two, 2)))

    assert heard == [("a", 1), ("a", 2)]
    assert results_of(agent) == [("success", "found")] * 2
    assert_valid_history(scout.messages)


async def test_an_agent_that_has_gone_on_meanwhile_is_not_set_back(make_agent, scout, heard, results_of):
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=True)])
    (question,) = (await agent.invoke_async("go")).interrupts
    (own,) = scout.suspension.interrupts
    await scout.invoke_async(answers((own, "directly")))
    before = list(scout.messages)

    await agent.invoke_async(answers((question, "late")))

    ((status, text),) = results_of(agent)
    assert (status, "could not go on with the answer" in text) == ("error", True)
    assert (list(scout.messages), heard) == (before, [("a", "directly")])


async def two_calls_of_which_the_second_has_asked(make_agent, scout):
    """An agent whose first call waits for leave, and the questions: for that leave, and of the second call."""

    def leave(event: BeforeToolCallEvent):
        event.interrupt("leave")

    agent = make_agent(
        [[ask(say="one", use_id="T1"), ask(say="two", use_id="T2")], "done"],
        tools=[scout.as_tool(preserve_context=True)],
        hooks=[leave],
    )
    first, second = (await agent.invoke_async("go")).interrupts
    first, inner = (await agent.invoke_async(answers((second, True)))).interrupts
    assert inner.id.startswith("v1:agent_as_tool:T2:")
    return agent, first, inner


async def test_a_call_waits_with_one_of_its_message_that_asked_before_the_pause(make_agent, scout, heard, results_of):
    agent, first, inner = await two_calls_of_which_the_second_has_asked(make_agent, scout)
    assert (await agent.invoke_async(answers((first, True)))).interrupts == [inner]
    (last,) = (await agent.invoke_async(answers((inner, 2)))).interrupts
    assert str(await agent.invoke_async(answers((last, 1)))) == "done\n"
    assert heard == [("a", 2), ("a", 1)]
    assert results_of(agent) == [("success", "found")] * 2


async def test_a_call_whose_answers_have_come_goes_before_others_of_its_message(make_agent, scout, heard, results_of):
    agent, first, inner = await two_calls_of_which_the_second_has_asked(make_agent, scout)
    (last,) = (await agent.invoke_async(answers((first, True), (inner, 2)))).interrupts
    assert last.id.startswith("v1:agent_as_tool:T1:")
    assert str(await agent.invoke_async(answers((last, 1)))) == "done\n"
    assert heard == [("a", 2), ("a", 1)]
    assert results_of(agent) == [("success", "found")] * 2


async def test_an_agent_that_waits_for_somebody_else_is_not_asked(make_agent, scout, heard, results_of):
    agent = make_agent([ask(), "done"], tools=[scout.as_tool(preserve_context=True)])
    (own,) = (await scout.invoke_async("mine")).interrupts

    await agent.invoke_async("go")

    assert results_of(agent) == [
        ("error", "Error: Agent 'scout' waits for an answer to what it has asked before; call it after that")
    ]
    assert str(await scout.invoke_async(answers((own, "yes")))) == "found\n"
    assert heard == [("a", "yes")]


async def test_an_agent_whose_caller_was_given_up_is_free_again(make_agent, scout, heard, results_of):
    """A resume that is cancelled before the call leaves nobody who could bring the answer."""
    agent = make_agent([ask(), ask(use_id="T2"), "done"], tools=[scout.as_tool(preserve_context=True)])
    (question,) = (await agent.invoke_async("go")).interrupts

    agent.cancel()
    assert (await agent.invoke_async(answers((question, "yes")))).stop_reason == "cancelled"
    assert scout.suspension is not None
    assert_valid_history(agent.messages)

    (again,) = (await agent.invoke_async("once more")).interrupts
    assert again.id.startswith("v1:agent_as_tool:T2:")
    assert str(await agent.invoke_async(answers((again, "now")))) == "done\n"
    assert heard == [("a", "now")]
    assert_valid_history(scout.messages)


async def test_an_agent_waits_for_whoever_is_above_all(make_agent, scout, heard, results_of):
    """The copy that has called it is gone by then."""
    kept = scout.as_tool(preserve_context=True)
    middle = make_agent(worker(ask(), says="middle"), name="middle", tools=[kept])
    agent = make_agent([ask("middle"), "done"], tools=[middle])
    other = make_agent([ask(), "done"], tools=[kept])
    (question,) = (await agent.invoke_async("go")).interrupts
    gc.collect()

    await other.invoke_async("go")
    ((status, text),) = results_of(other)
    assert (status, "waits for an answer" in text) == ("error", True)

    assert str(await agent.invoke_async(answers((question, "yes")))) == "done\n"
    assert (heard, results_of(agent)) == ([("a", "yes")], [("success", "middle")])


async def test_a_kept_conversation_is_loaded_where_the_agent_is_new(make_agent, asks, heard):
    def make():
        scout = make_agent(worker(ASK_A), name="scout", tools=[asks])
        middle = make_agent(worker(ask(), says="middle"), name="middle", tools=[scout.as_tool(preserve_context=True)])
        return scout, make_agent(worker(ask("middle"), says="done"), tools=[middle.as_tool(preserve_context=True)])

    _, agent = make()
    (question,) = (await agent.invoke_async("go")).interrupts
    saved = json.loads(json.dumps(agent.take_snapshot(preset="session").to_dict()))

    scout, other = make()
    other.load_snapshot(Snapshot.from_dict(saved))
    assert str(await other.invoke_async(answers((question, "there")))) == "done\n"

    assert heard == [("a", "there")]
    assert [message["role"] for message in scout.messages] == ["user", "assistant", "user", "assistant"]


# -- checkpoints -------------------------------------------------------------------------------------------------------


async def test_a_sub_agent_does_not_stop_at_its_checkpoints(make_agent, asks, heard, results_of):
    class Checkpoints:
        name = "checkpoints"

        def __init__(self):
            self.emitted = []

        @hookimpl
        async def emit_checkpoint(self, position, cycle_index):
            self.emitted.append((position, cycle_index))
            return {"position": position, "cycle_index": cycle_index}

    checkpoints = Checkpoints()
    scout = make_agent(worker(ASK_A), name="scout", tools=[asks], plugins=[checkpoints])
    agent = make_agent([ask(), "done"], tools=[scout])

    result = await agent.invoke_async("go")
    assert (result.stop_reason, checkpoints.emitted) == ("interrupt", [("after_model", 0)])
    await agent.invoke_async(answers((result.interrupts[0], "yes")))

    assert checkpoints.emitted == [("after_model", 0), ("after_tools", 0)]
    assert (heard, results_of(agent)) == ([("a", "yes")], [("success", "found")])


# -- cancelling --------------------------------------------------------------------------------------------------------


async def test_a_sub_agent_that_goes_on_can_be_cancelled(make_agent, results_of):
    started = threading.Event()

    @tool(context=True)
    async def asks(tool_context: ToolContext) -> str:
        """Asks, then never ends."""
        tool_context.interrupt("approve")
        started.set()
        await asyncio.Event().wait()
        return "never"

    scout = make_agent(worker(use("asks", {}, id="C1")), name="scout", tools=[asks])
    agent = make_agent([ask(), "done"], tools=[scout])
    result = await agent.invoke_async("go")

    task = asyncio.create_task(agent.invoke_async(answers((result.interrupts[0], "yes"))))
    for _ in range(20_000):
        if started.is_set():
            break

        await asyncio.sleep(0.001)

    agent.cancel()
    assert (await task).stop_reason == "cancelled"
    assert agent.suspension is None
    assert_valid_history(agent.messages)
    assert [status for status, _ in results_of(agent)] == ["error"]


async def test_a_hook_around_the_call_may_ask_as_well(make_agent, scout, heard, results_of):
    """Its answer and the sub-agent's do not get mixed up, and what the sub-agent came to is kept."""

    class Around:
        name = "around"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            result = await call_next(call)
            heard.append(current_run().interrupt("approve", of="around"))
            return result

    agent = make_agent([ask(), "done"], tools=[scout], plugins=[Around()])
    (inner,) = (await agent.invoke_async("go")).interrupts
    (outer,) = (await agent.invoke_async(answers((inner, "inner")))).interrupts
    await agent.invoke_async(answers((outer, "outer")))

    assert heard == [("a", "inner"), "outer"]
    assert (scout.model.calls, results_of(agent)) == (2, [("success", "found")])
