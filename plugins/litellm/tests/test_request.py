from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import ValidationError

from ropewalk.model import ModelRequest
from ropewalk_litellm.request import arguments, response_format
from ropewalk_litellm.settings import Settings

HELLO = [{"role": "user", "content": [{"text": "hello"}]}]
ADD = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object", "properties": {}}}}
TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}},
}


def sent(settings=None, **request):
    return arguments(
        Settings(**{"model_id": "openai/m", **(settings or {})}), ModelRequest(**{"messages": HELLO, **request})
    )


def test_a_call_asks_for_usage_and_repeats_nothing_by_itself():
    assert sent() == {
        "model": "openai/m",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "num_retries": 0,
        "max_retries": 0,
    }


def test_parameters_and_client_arguments_are_passed_on():
    call = sent(
        {"params": {"temperature": 0.5, "stream_options": {}}, "client_args": {"api_base": "http://x", "timeout": 3}}
    )

    assert call["temperature"] == 0.5
    assert call["stream_options"] == {}
    assert (call["api_base"], call["timeout"]) == ("http://x", 3)


def test_an_answer_in_one_piece_has_no_options_of_streams():
    call = sent({"stream": False})

    assert call["stream"] is False
    assert "stream_options" not in call


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        ({"auto": {}}, "auto"),
        ({"any": {}}, "required"),
        ({"tool": {"name": "add"}}, {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_the_choice_of_tools_is_translated(choice, expected):
    call = sent(tool_specs=(ADD,), tool_choice=choice)

    assert call["tools"] == [TOOL]
    assert call.get("tool_choice") == expected


def test_without_tools_there_is_no_choice():
    assert "tool_choice" not in sent({"params": {"tool_choice": "auto"}}, tool_choice={"any": {}})


USED = [
    *HELLO,
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "T1", "name": "add", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "T1", "status": "success", "content": [{"text": "3"}]}}]},
]


def test_tools_that_are_gone_are_named_to_providers_that_want_them():
    (tool,) = sent({"model_id": "anthropic/claude-x"}, messages=USED)["tools"]

    assert tool["function"]["name"] == "add"
    assert "tools" not in sent(messages=USED)


def test_the_last_tool_carries_the_mark_of_all():
    call = sent({"cache_config": {"strategy": "auto", "ttl": "1h"}}, tool_specs=(ADD, {**ADD, "name": "mul"}))

    assert "cache_control" not in call["tools"][0]
    assert call["tools"][1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_marks_are_on_texts_results_and_calls():
    point = {"cachePoint": {"type": "default"}}
    messages = [{**message, "content": [*message["content"], point]} for message in USED]

    user, assistant, tool = sent(messages=messages)["messages"]

    mark = {"cache_control": {"type": "ephemeral"}}
    assert user["content"] == [{"type": "text", "text": "hello", **mark}]
    assert assistant["tool_calls"][0]["cache_control"] == mark["cache_control"]
    assert tool["content"] == [{"type": "text", "text": "3", **mark}]


def test_an_output_schema_is_a_response_format():
    schema = {"title": "My Answer!", "type": "object", "properties": {"n": {"type": "integer"}}}

    assert sent(output_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "My_Answer_", "schema": schema},
    }


@pytest.mark.parametrize(
    ("change", "strict"),
    [
        ({}, True),
        ({"required": []}, False),
        ({"additionalProperties": True}, False),
        ({"$defs": {"A": {"type": "object"}}}, False),
    ],
)
def test_a_schema_that_says_everything_is_held_strictly(change, strict):
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }

    assert response_format({**schema, **change})["json_schema"].get("strict", False) is strict


@pytest.mark.parametrize("name", ["params", "client_args"])
@pytest.mark.parametrize("key", ["messages", "model", "stream", "tools"])
def test_what_the_agent_fills_cannot_be_given(name, key):
    with pytest.raises(ValidationError, match=f"{key} cannot be given"):
        Settings(model_id="openai/m", **{name: {key: 1}})


def test_keys_are_not_shown():
    assert "sk-secret" not in repr(Settings(model_id="openai/m", client_args={"api_key": "sk-secret"}))


THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}}
USE = {"toolUse": {"toolUseId": "T1", "name": "add", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "T1", "status": "success", "content": [{"text": "3"}]}}


@pytest.mark.parametrize(
    ("model_id", "sent_back"),
    [
        ("openai/gpt-5", False), ("gpt-4o", False), ("azure/o3-mini", False), ("openai/chatgpt-4o-latest", False),
        ("openai/gpt-oss-120b", True), ("openai/o-my-proxy", True), ("anthropic/claude-sonnet-4-5", True),
    ],
)  # fmt: skip
def test_models_of_openai_are_sent_no_thinking_of_others(model_id, sent_back):
    messages = [*HELLO, {"role": "assistant", "content": [THOUGHT, USE]}, {"role": "user", "content": [RESULT]}]

    message = sent({"model_id": model_id}, messages=messages)["messages"][1]

    assert ("thinking_blocks" in message) is sent_back
    assert message["tool_calls"][0]["id"] == "T1"


def test_a_schema_that_is_no_strict_json_is_made_it():
    default = {"type": "number", "default": Decimal("1.5")}
    schema = {"type": "object", "properties": {"a": default}}
    call = sent(tool_specs=({**ADD, "inputSchema": {"json": schema}},))

    (made,) = call["tools"]
    assert made["function"]["parameters"]["properties"]["a"] == {"type": "number", "default": "1.5"}
