from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ropewalk import Agent, tool
from ropewalk.kits.json_values import packed, unpacked
from ropewalk_litellm.events import EventWriter
from ropewalk_litellm.library import litellm
from ropewalk_litellm.request import arguments
from ropewalk_litellm.settings import Settings
from ropewalk_testing import assert_valid_history
from ropewalk_testing.servers import DONE

SIGNATURE = "Co4CAdHtim/" + "x" * 300 + "+w=="
GIVEN = f"call_1__thought__{SIGNATURE}"


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.fixture
def asked(chunk, call):
    """A stream in which a signed and an unsigned call are asked for, in a script of two turns."""
    first = chunk(call(0, GIVEN, "add", '{"a": 1, "b": 2}'))
    second = chunk(call(1, "call_2", "add", '{"a": 3, "b": 4}'))
    end = [chunk({}, "tool_calls"), DONE]

    from ropewalk_testing import turn

    return [turn(raw=[first, second, *end]), "Done."]


def ids_in(messages):
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    return calls, [message["tool_call_id"] for message in messages if message["role"] == "tool"]


def test_gemini_gets_the_signature_of_its_call_back_where_litellm_looks_for_it(served, asked):
    model, server = served(asked, model_id="openai/gemini-3-pro")
    agent = Agent(model=model, tools=[add], callback_handler=None)

    agent("Add.")

    assert ids_in(server.requests[1].body["messages"]) == ([GIVEN, "call_2"], [GIVEN, "call_2"])
    use = agent.messages[1]["content"][0]["toolUse"]
    assert (use["toolUseId"], use["signature"]) == ("call_1", SIGNATURE)
    assert "signature" not in agent.messages[1]["content"][1]["toolUse"]
    assert_valid_history(agent.messages)


def test_the_signature_survives_a_store_and_no_other_model_is_sent_it(served, asked):
    model, _ = served(asked, model_id="openai/gemini-3-pro")
    agent = Agent(model=model, tools=[add], callback_handler=None)
    agent("Add.")
    stored = unpacked(json.loads(json.dumps(packed(agent.messages))))

    gemini, gemini_server = served(["Yes."], model_id="openai/gemini-3-flash")
    other, other_server = served(["Yes."])
    Agent(model=gemini, messages=stored, callback_handler=None)("And?")
    Agent(model=other, messages=stored, callback_handler=None)("And?")

    assert ids_in(gemini_server.requests[0].body["messages"])[1] == [GIVEN, "call_2"]
    assert ids_in(other_server.requests[0].body["messages"]) == (["call_1", "call_2"], ["call_1", "call_2"])


def test_a_signature_in_a_field_of_its_own_is_kept_too():
    function = SimpleNamespace(name="add", arguments="{}", provider_specific_fields=None)
    call = SimpleNamespace(index=0, id="c", function=function, provider_specific_fields={"thought_signature": "UzE="})
    writer = EventWriter()

    events = [*writer.piece(SimpleNamespace(tool_calls=[call]))]

    assert events[0]["contentBlockStart"]["start"]["toolUse"] == {"toolUseId": "c", "name": "add", "signature": "UzE="}


def test_litellm_hands_gemini_the_signature_that_is_sent_back():
    litellm()
    from litellm.litellm_core_utils.prompt_templates.factory import convert_to_gemini_tool_call_invoke

    use = {"toolUseId": "call_1", "name": "add", "input": {"a": 1}, "signature": SIGNATURE}
    history = [{"role": "assistant", "content": [{"toolUse": use}]}]
    request = SimpleNamespace(
        messages=history, system=(), tool_specs=(), tool_choice=None, output_schema=None, invocation_state={}
    )
    (message,) = arguments(Settings(model_id="gemini/gemini-3-pro"), request)["messages"]

    (part,) = convert_to_gemini_tool_call_invoke(message)

    assert part["thoughtSignature"] == SIGNATURE
