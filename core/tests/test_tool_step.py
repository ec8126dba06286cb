"""Whatever a tool does, its call gets one result, and only what may not be held leaves the run."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, parallel, problems, results_of, statuses_of, use

from ropewalk import Agent, PluginError, ToolDefinitionError


class BrokenTextError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class OwnBase(BaseException):
    pass


ORDINARY = {
    "value": (ValueError("m"), "Error: m"),
    "other": (KeyError("k"), "Error: KeyError - 'k'"),
    "silent": (RuntimeError(), "Error: RuntimeError"),
    "broken text": (BrokenTextError(), "Error: BrokenTextError"),
    "group": (ExceptionGroup("several", [ValueError("a"), OSError("b")]), "Error: ExceptionGroup - several (2 sub-"),
    "recursion": (RecursionError("deep"), "Error: RecursionError - deep"),
    "own cancel": (asyncio.CancelledError("mine"), "Error: CancelledError - mine"),
    "stop": (StopAsyncIteration("s"), "Error: "),
    "surrogate": (ValueError("bad \ud83d"), "Error: bad \ufffd"),
}
FATAL = {
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt("ctrl-C"),
    "base": OwnBase("own"),
    "group": BaseExceptionGroup("g", [KeyboardInterrupt()]),
}


def raises(error, *, threaded):
    def body(call):
        raise error

    async def abody(call):
        await asyncio.sleep(0)
        raise error

    return body if threaded else abody


def agent_with(body, executor):
    async def fine(call):
        await asyncio.sleep(0)
        return "fine"

    turn = [use("fine", tool_use_id="before"), use("bad", tool_use_id="bad"), use("fine", tool_use_id="after")]
    model = FakeModel(turn, "done", "more")
    tools = [FakeTool("bad", body), FakeTool("fine", fine)]
    return Agent(model=model, tools=tools, plugins=[parallel()] if executor else [])


@pytest.mark.parametrize("executor", [False, True], ids=["in order", "at once"])
@pytest.mark.parametrize("threaded", [False, True], ids=["async", "thread"])
@pytest.mark.parametrize("kind", ORDINARY)
def test_an_error_of_a_tool_is_the_result_of_its_call_and_of_no_other(kind, threaded, executor, ask):
    error, text = ORDINARY[kind]
    agent = agent_with(raises(error, threaded=threaded), executor)

    result = ask(agent, "go")

    assert result.stop_reason == "end_turn"
    assert results_of(agent.messages)["bad"].startswith(text)
    assert statuses_of(agent.messages) == {"before": "success", "bad": "error", "after": "success"}
    assert result.metrics.tool_metrics["bad"].error_count == 1


@pytest.mark.parametrize("threaded", [False, True], ids=["async", "thread"])
def test_stop_iteration_is_an_error_result_too(threaded, ask):
    agent = agent_with(raises(StopIteration(1), threaded=threaded), executor=False)

    assert ask(agent, "go").stop_reason == "end_turn"
    assert "StopIteration" in results_of(agent.messages)["bad"]


@pytest.mark.parametrize("executor", [False, True], ids=["in order", "at once"])
@pytest.mark.parametrize("threaded", [False, True], ids=["async", "thread"])
@pytest.mark.parametrize("kind", ["exit", "interrupt"])
def test_what_ends_a_program_leaves_the_run_with_every_call_answered(kind, threaded, executor, ask):
    error = FATAL[kind]
    agent = agent_with(raises(error, threaded=threaded), executor)

    with pytest.raises(type(error)) as caught:
        ask(agent, "go")

    assert caught.value is error
    assert problems(agent.messages) == []
    assert set(results_of(agent.messages)) == {"before", "bad", "after"}
    assert ask(agent, "again").stop_reason == "end_turn"


@pytest.mark.parametrize("kind", ["base", "group"])
def test_any_other_base_exception_leaves_the_run_too(kind):
    error = FATAL[kind]
    agent = agent_with(raises(error, threaded=False), executor=False)

    with pytest.raises(type(error)):
        agent("go")

    assert problems(agent.messages) == []
    said = results_of(agent.messages)
    assert said["before"] == "fine"
    assert "may or may not" in said["bad"]
    assert "never started" in said["after"]
    assert str(agent("again")) == "done\n"


@pytest.mark.parametrize(
    ("answer", "text", "status"),
    [
        ({"content": [{"text": "x"}]}, "x", "success"),
        ({"status": "error", "content": [{"text": "x"}]}, "x", "error"),
        ({"toolUseId": "someone else's", "status": "success", "content": [{"text": "x"}]}, "x", "success"),
        ({"content": [{"text": 3}]}, "3", "success"),
        ({"content": [{"text": "bad \ud83d"}]}, "bad \ufffd", "success"),
        ({"content": "x"}, "Error: Tool 't' did not return a result but dict", "error"),
        ({"status": "odd", "content": []}, "Error: Tool 't' returned a malformed result", "error"),
        ({"content": ["x"]}, "Error: Tool 't' returned a malformed result", "error"),
        ({}, "Error: Tool 't' did not return a result but dict", "error"),
    ],
    ids=repr,
)
def test_a_result_is_put_into_shape(answer, text, status):
    tool = FakeTool("t", lambda call: answer)
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[tool])
    before = repr(answer)

    agent("go")

    assert (results_of(agent.messages), statuses_of(agent.messages)) == ({"T": text}, {"T": status})
    assert repr(answer) == before


@pytest.mark.parametrize("answer", [None, 3, object()], ids=["None", "int", "object"])
def test_what_is_no_result_is_said(answer):
    class Odd(FakeTool):
        async def invoke(self, call):
            return answer

    agent = Agent(model=FakeModel(use("odd", tool_use_id="T"), "done"), tools=[Odd("odd")])
    agent("go")

    assert f"did not return a result but {type(answer).__name__}" in results_of(agent.messages)["T"]


def test_one_result_object_for_two_calls_serves_both():
    shared = {"toolUseId": "A", "status": "success", "content": [{"text": "x"}]}
    model = FakeModel([use("t", tool_use_id="A"), use("t", tool_use_id="B")], "done")
    agent = Agent(model=model, tools=[FakeTool("t", lambda call: shared)])
    agent("go")

    assert results_of(agent.messages) == {"A": "x", "B": "x"}
    assert shared["toolUseId"] == "A"


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        (use("nobody", tool_use_id="T"), "Unknown tool: nobody"),
        (use("a b", tool_use_id="T"), "invalid tool name"),
        (use("t", "[1]", tool_use_id="T"), "array"),
        (use("t", "{", tool_use_id="T"), "not valid JSON"),
    ],
    ids=["unknown", "illegal", "array", "cut"],
)
def test_a_call_that_cannot_run_is_answered_and_its_tool_not_run(turn, text):
    tool = FakeTool("t")
    agent = Agent(model=FakeModel(turn, "done"), tools=[tool])

    assert agent("go").stop_reason == "end_turn"
    assert text in results_of(agent.messages)["T"]
    assert tool.calls == 0


def test_attempts_are_counted_whatever_call_the_hook_hands_on():
    seen = []

    async def around_tool_call(self, call, call_next):
        await call_next(call.with_input({"n": 1}))
        await call_next(call)
        return await call_next(call.with_input({"n": 2}))

    tool = FakeTool("t", lambda call: seen.append((call.attempt, call.tool_use["input"], call.idempotency_key)))
    agent = Agent(
        model=FakeModel(use("t", {"n": 0}), "done"),
        tools=[tool],
        plugins=[make_plugin(around_tool_call=around_tool_call)],
    )
    agent("go")

    assert [(attempt, value["n"]) for attempt, value, _ in seen] == [(1, 1), (2, 0), (3, 2)]
    assert len({key for _, _, key in seen}) == 1
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"n": 0}


def test_a_call_can_be_denied_or_run_another_tool():
    async def around_tool_call(self, call, call_next):
        if call.tool_use["toolUseId"] == "no":
            return {"status": "error", "content": [{"text": "denied"}]}

        return await call_next(call.with_tool(other))

    other, tool = FakeTool("other", lambda call: "other"), FakeTool("t")
    model = FakeModel([use("t", tool_use_id="no"), use("t", tool_use_id="yes")], "done")
    agent = Agent(model=model, tools=[tool], plugins=[make_plugin(around_tool_call=around_tool_call)])
    agent("go")

    assert results_of(agent.messages) == {"no": "denied", "yes": "other"}
    assert tool.calls == 0


@pytest.mark.parametrize("bad", [None, [], [{}], "text"], ids=repr)
def test_an_executor_that_does_not_answer_every_call_is_named(bad):
    async def execute_tools(self, batch):
        return bad

    agent = Agent(
        model=FakeModel([use("t"), use("t")], "done"),
        tools=[FakeTool("t")],
        plugins=[make_plugin(execute_tools=execute_tools)],
    )
    if bad is None:
        assert agent("go").stop_reason == "end_turn"
        return

    with pytest.raises(PluginError, match="execute_tools returned"):
        agent("go")

    assert problems(agent.messages) == []


def test_results_of_an_executor_are_matched_by_id_not_by_place():
    async def execute_tools(self, batch, run_tool):
        return [await run_tool(call) for call in reversed(batch.calls)]

    model = FakeModel([use("t", tool_use_id="A"), use("t", tool_use_id="B")], "done")
    tool = FakeTool("t", lambda call: call.tool_use["toolUseId"])
    agent = Agent(model=model, tools=[tool], plugins=[make_plugin(execute_tools=execute_tools)])
    agent("go")

    assert list(results_of(agent.messages).items()) == [("A", "A"), ("B", "B")]


def test_a_tool_name_is_taken_once():
    with pytest.raises(ToolDefinitionError, match="only by - and _"):
        Agent(tools=[FakeTool("a-b"), FakeTool("a_b")])


@pytest.mark.parametrize("raised", [RuntimeError("no"), None], ids=["raised", "returned"])
def test_hooks_can_see_what_a_tool_raised(raised):
    seen = []

    def body(call):
        if raised is not None:
            raise raised

        return "fine"

    async def look(self, call, call_next):
        result = await call_next(call)
        seen.append(call.error)
        return result

    agent = Agent(
        model=FakeModel(use("t"), "done"), tools=[FakeTool("t", body)], plugins=[make_plugin(around_tool_call=look)]
    )
    agent("go")

    assert seen == [raised]
