"""Scripted models in agents."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent, ModelThrottledException
from ropewalk_testing import ScriptedModel, ScriptExhausted, assert_valid_history, turn, use


class Add:
    tool_name = "add"
    tool_spec = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "3"}]}


def agent(model):
    return Agent(model=model, tools=[Add()], plugins=["-console", "-retry"])


pytestmark = pytest.mark.usefixtures("ropewalk_env")


def test_an_agent_plays_the_script():
    model = ScriptedModel([use("add", {"a": 1, "b": 2}), "That is 3."])
    tested = agent(model)

    assert str(tested("What is 1 + 2?")) == "That is 3.\n"
    assert (model.calls, model.active, model.aborted) == (2, 0, 0)
    assert model.requests[0].tool_specs == (Add.tool_spec,)
    assert len(model.requests[0].messages) == 1
    assert len(model.requests[1].messages) == 3
    assert_valid_history(tested.messages)


def test_a_tool_use_that_is_repeated_has_an_id_of_its_own_each_time():
    model = ScriptedModel([use("add")] * 50 + ["Done."])

    agent(model)("go")

    assert_valid_history(model.requests[-1].messages)
    assert len(model.requests[-1].messages) == 101


def test_an_exhausted_script_reaches_the_caller():
    with pytest.raises(ScriptExhausted, match="1 turn and call 2"):
        agent(ScriptedModel([use("add")]))("go")


def test_a_fault_reaches_the_caller():
    with pytest.raises(ModelThrottledException, match="slow down"):
        agent(ScriptedModel([ModelThrottledException("slow down")]))("go")


async def test_a_stalled_model_is_let_go_when_the_run_is_cancelled():
    model = ScriptedModel([turn("So far", stall=True)])
    tested = agent(model)
    running = asyncio.create_task(tested.invoke_async("go"))
    await model.wait_stalled()

    tested.cancel()
    result = await running

    assert (result.stop_reason, model.active, model.aborted) == ("cancelled", 0, 1)


async def test_a_model_string_needs_no_plugin_to_be_named():
    assert str(await Agent(model="testing:echo", plugins=["-console"]).invoke_async("echo")) == "echo\n"
