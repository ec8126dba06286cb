"""Agents with the console: what is printed, and what callbacks get."""

from __future__ import annotations

import pytest

from ropewalk import Agent, ModelError, ModelThrottledException, PluginError, hookimpl
from ropewalk_console import CompositeCallbackHandler, PrintingCallbackHandler, null_callback_handler
from ropewalk_testing import ScriptedModel, turn, use


class Add:
    tool_name = "add"
    tool_spec = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        call.emit("half way")
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "3"}]}


class RetryOnce:
    name = "retry"

    @hookimpl
    async def decide_retry(self, failure):
        return 0.0 if failure.attempt == 1 else None


def agent(*script, **options):
    return Agent(model=ScriptedModel(script), tools=[Add()], **options)


SCRIPT = (["I add. ", use("add", {"a": 1}, id="A")], turn("It is 3.", deltas=2))


def test_an_agent_prints_unless_told_otherwise(capsys):
    agent(*SCRIPT)("hi")

    assert capsys.readouterr().out == "I add. \nTool #1: add\nIt is 3.\n"


@pytest.mark.parametrize("options", [{"callback_handler": None}, {"callback_handler": null_callback_handler}])
def test_an_agent_can_be_silent(capsys, options):
    agent(*SCRIPT, **options)("hi")

    assert capsys.readouterr().out == ""


def test_the_printing_handler_prints_what_the_default_prints(capsys):
    agent(*SCRIPT)("hi")
    expected = capsys.readouterr().out

    agent(*SCRIPT, callback_handler=PrintingCallbackHandler())("hi")

    assert capsys.readouterr().out == expected


def test_an_error_after_a_part_of_the_answer_starts_on_a_line_of_its_own(capsys):
    with pytest.raises(ModelError):
        agent(turn("half", error=ModelError("gone")), retry_strategy=None)("hi")

    assert capsys.readouterr().out == "half\n"


def test_a_retry_after_a_part_of_the_answer_is_announced(capsys):
    agent(turn("half", error=ModelThrottledException("slow down")), "whole", plugins=[RetryOnce()])("hi")

    half, note, whole, rest = capsys.readouterr().out.split("\n")
    assert (half, whole, rest) == ("half", "whole", "")
    assert note.startswith("[the answer starts again: ")


def plain(event):
    """An event, comparable: results are objects of their own."""
    return "result" if "result" in event else event


async def streamed(**options):
    return [plain(event) async for event in agent(*SCRIPT, **options).stream_async("hi")]


async def test_a_handler_gets_exactly_what_the_stream_yields():
    seen = []
    expected = await streamed(callback_handler=None)

    got = await streamed(callback_handler=lambda **event: seen.append(plain(event)))

    assert seen == expected == got
    assert expected[-1] == "result"


async def test_an_asynchronous_handler_gets_exactly_what_the_stream_yields():
    seen = []

    async def handler(**event):
        seen.append(plain(event))

    expected = await streamed(callback_handler=None)
    await agent(*SCRIPT, callback_handler=CompositeCallbackHandler(null_callback_handler, handler)).invoke_async("hi")

    assert seen == expected


@pytest.mark.parametrize("key", ["init_event_loop", "event", "data", "tool_stream_event", "tools_starting", "result"])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_a_handler_raises_reaches_the_caller_and_leaves_the_agent_usable(key, asynchronous):
    failing = True

    def handler(**event):
        if failing and key in event:
            raise ValueError("broken")

    async def async_handler(**event):
        handler(**event)

    tested = agent(*SCRIPT, *SCRIPT, callback_handler=async_handler if asynchronous else handler)
    with pytest.raises(ValueError, match="broken"):
        await tested.invoke_async("hi")

    failing = False
    tested.model = ScriptedModel(["Fine."])
    assert str(await tested.invoke_async("again")) == "Fine.\n"


def test_what_cannot_be_called_is_refused_when_the_agent_is_made():
    with pytest.raises(PluginError, match="a callback handler is a function or an instance"):
        agent(callback_handler="print")
