"""What hooks put in the model's or the user's place is checked before it is stored: the history stays valid."""

from __future__ import annotations

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems, use

from ropewalk import Agent, ModelOutcome, Retry, ToolsOutcome
from ropewalk.errors import HistoryError

USE = {"toolUseId": "A", "name": "t", "input": {}}
RESULT = {"toolUseId": "Z", "status": "success", "content": []}
WRONG = [
    [{"text": 3}],
    [{}],
    ["x"],
    [{"toolResult": RESULT}],
    [{"toolUse": {"name": "t", "input": {}}}],
]


def agent_with(plugin, *turns):
    return Agent(model=FakeModel(*turns), tools=[FakeTool("t")], plugins=[plugin])


def answers(content, role="assistant"):
    async def around_model_call(self, request):
        return ModelOutcome({"role": role, "content": content}, "end_turn")

    return make_plugin(around_model_call=around_model_call)


@pytest.mark.parametrize("content", [*WRONG, "text", None])
def test_a_wrong_answer_is_refused(content):
    agent = agent_with(answers(content))
    with pytest.raises(HistoryError, match="the answer from around_model_call"):
        agent("go")

    assert problems(agent.messages) == []


def test_an_answer_in_the_users_name_is_refused():
    with pytest.raises(HistoryError, match="no answer of a model: use role assistant"):
        agent_with(answers([{"text": "hi"}], "user"))("go")


@pytest.mark.parametrize("use_id", ["A", "not legal!", "x" * 100])
def test_a_hooks_tool_use_gets_an_id_that_is_legal_and_new(use_id):
    turns = iter([[{"toolUse": {**USE, "toolUseId": use_id}}] * 2, [{"toolUse": {**USE, "toolUseId": use_id}}], None])

    async def around_model_call(self, request, call_next):
        content = next(turns)
        if content is None:
            return await call_next(request)

        return ModelOutcome({"role": "assistant", "content": content}, "tool_use")

    agent = agent_with(make_plugin(around_model_call=around_model_call), "done")

    assert str(agent("go")) == "done\n"
    assert problems(agent.messages) == []
    assert sum("toolResult" in block for message in agent.messages for block in message["content"]) == 3


@pytest.mark.parametrize("blocks", [*WRONG, [{"toolUse": USE}]])
def test_wrong_content_to_go_on_with_is_refused(blocks):
    async def decide_continue(self, message):
        return blocks

    agent = agent_with(make_plugin(decide_continue=decide_continue), "a", "b")
    with pytest.raises(Exception, match="decide_continue"):
        agent("go")

    assert problems(agent.messages) == []


@pytest.mark.parametrize("blocks", [*WRONG, [{"toolUse": USE}], 7])
def test_a_wrong_end_of_the_turn_is_refused_and_the_results_stay(blocks):
    async def around_tools(self, batch, call_next):
        return ToolsOutcome((await call_next(batch)).results, end_turn=blocks)

    agent = agent_with(make_plugin(around_tools=around_tools), use("t"))
    with pytest.raises(HistoryError, match=r"ToolsOutcome\.end_turn"):
        agent("go")

    assert problems(agent.messages) == []
    assert "toolResult" in agent.messages[-1]["content"][0]


@pytest.mark.parametrize("blocks", [*WRONG, [{"toolUse": USE}]])
def test_wrong_feedback_of_a_retry_is_refused(blocks):
    async def around_model_call(self, request):
        return Retry("no", feedback=tuple(blocks))

    agent = agent_with(make_plugin(around_model_call=around_model_call))
    with pytest.raises(HistoryError, match=r"Retry\.feedback"):
        agent("go")

    assert problems(agent.messages) == []
