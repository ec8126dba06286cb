from __future__ import annotations

import sys
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from ropewalk import Agent, ToolContext, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, use

Heard = list[Any]


def agent_with(a_tool: Any, **parameters: Any) -> Agent:
    turns = [use(a_tool.tool_name, {}, id="T1"), "done"]
    return Agent(model=ScriptedModel(turns), tools=[a_tool], callback_handler=None, **parameters)


def answer(result: Any, response: Any) -> list[Any]:
    (question,) = result.interrupts
    return [{"interruptResponse": {"interruptId": question.id, "response": response}}]


def text_of(agent: Agent) -> str:
    block: Any = agent.messages[2]["content"][0]
    return str(block["toolResult"]["content"][0]["text"])


def awaited(heard: Heard) -> Any:
    @tool(context=True)
    async def asks(tool_context: ToolContext) -> str:
        heard.append(tool_context.interrupt("approve", {"of": "it"}))
        return "answered"

    return asks


def in_a_thread(heard: Heard) -> Any:
    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        heard.append(tool_context.interrupt("approve", {"of": "it"}))
        return "answered"

    return asks


def generated(heard: Heard) -> Any:
    @tool(context=True)
    def asks(tool_context: ToolContext) -> Iterator[str]:
        yield "asking"
        heard.append(tool_context.interrupt("approve", {"of": "it"}))
        yield "answered"

    return asks


def generated_asynchronously(heard: Heard) -> Any:
    @tool(context=True)
    async def asks(tool_context: ToolContext) -> AsyncIterator[str]:
        yield "asking"
        heard.append(tool_context.interrupt("approve", {"of": "it"}))
        yield "answered"

    return asks


def of_a_module(heard: Heard) -> Any:
    module = types.ModuleType("asks")
    spec = {"name": "asks", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}
    module.TOOL_SPEC = spec  # type: ignore[attr-defined]

    def asks(tool_use: Any, tool_context: ToolContext) -> Any:
        heard.append(tool_context.interrupt("approve", {"of": "it"}))
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": "answered"}]}

    module.asks = asks  # type: ignore[attr-defined]
    return module


BODIES = [awaited, in_a_thread, generated, generated_asynchronously]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("response", ["yes", False, None, 0, "", {"deep": [1, None]}])
async def test_every_kind_of_body_can_ask(body: Callable[[Heard], Any], response: Any) -> None:
    heard: Heard = []
    agent = agent_with(body(heard))

    result = await agent.invoke_async("go")
    assert (result.stop_reason, heard) == ("interrupt", [])
    (question,) = result.interrupts or ()
    assert (question.name, question.reason) == ("approve", {"of": "it"})
    assert question.id.startswith("v1:tool_call:T1:")

    assert str(await agent.invoke_async(answer(result, response))) == "done\n"
    assert (heard, type(heard[0])) == ([response], type(response))
    assert text_of(agent) == "answered"
    assert_valid_history(agent.messages)


async def test_the_tool_of_a_module_can_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: Heard = []
    monkeypatch.setitem(sys.modules, "asks", of_a_module(heard))
    model = ScriptedModel([use("asks", {}, id="T1"), "done"])
    agent = Agent(model=model, tools=[sys.modules["asks"]], callback_handler=None)

    result = await agent.invoke_async("go")
    await agent.invoke_async(answer(result, "yes"))

    assert (heard, text_of(agent)) == (["yes"], "answered")


async def test_a_known_answer_pauses_nothing() -> None:
    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        return str(tool_context.interrupt("approve", response="known"))

    agent = agent_with(asks)

    assert str(await agent.invoke_async("go")) == "done\n"
    assert text_of(agent) == "known"


async def test_the_idempotency_key_stays_when_the_tool_runs_again() -> None:
    keys: list[str] = []

    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        keys.append(tool_context.idempotency_key)
        return str(tool_context.interrupt("approve"))

    agent = agent_with(asks)
    result = await agent.invoke_async("go")
    await agent.invoke_async(answer(result, "yes"))

    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert keys[0].endswith(":T1")


async def test_a_tool_that_catches_its_errors_does_not_catch_a_pause() -> None:
    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        try:
            return str(tool_context.interrupt("approve"))
        except Exception as error:  # noqa: BLE001 - what tools do
            return f"caught {type(error).__name__}"

    agent = agent_with(asks)
    result = await agent.invoke_async("go")

    assert result.stop_reason == "interrupt"


async def test_the_same_name_in_one_call_is_the_same_question() -> None:
    @tool(context=True)
    def asks(tool_context: ToolContext) -> str:
        return str([tool_context.interrupt("approve"), tool_context.interrupt("approve")])

    agent = agent_with(asks)
    result = await agent.invoke_async("go")
    await agent.invoke_async(answer(result, "yes"))

    assert text_of(agent) == "['yes', 'yes']"


async def test_what_a_body_has_opened_is_closed_when_it_pauses() -> None:
    closed: list[str] = []

    @tool(context=True)
    async def asks(tool_context: ToolContext) -> AsyncIterator[str]:
        try:
            yield str(tool_context.interrupt("approve"))
        finally:
            closed.append("closed")

    agent = agent_with(asks)
    await agent.invoke_async("go")

    assert closed == ["closed"]


def test_in_a_direct_call_nobody_can_answer() -> None:
    heard: Heard = []
    agent = agent_with(in_a_thread(heard))

    with pytest.raises(RuntimeError, match="'asks' asks approve, which nobody can answer in a direct call"):
        agent.tool.asks()

    assert (heard, agent.suspension, list(agent.messages)) == ([], None, [])
