from __future__ import annotations

import copy
import json

import pytest

from ropewalk_bedrock.request import converse_arguments, count_arguments
from ropewalk_bedrock.settings import Settings

USE = {"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1}}}
RESULT = {"toolResult": {"toolUseId": "T1", "status": "error", "content": [{"text": "x"}]}}


def test_a_plain_request_holds_nothing_that_was_not_asked_for(request_of):
    assert converse_arguments(request_of("Hi!"), Settings(model_id="m")) == {
        "modelId": "m",
        "messages": [{"role": "user", "content": [{"text": "Hi!"}]}],
    }


def test_only_role_and_content_are_sent_and_the_conversation_is_not_written_to(request_of):
    request = request_of("Hi!")
    request.messages[0]["tracking_id"] = "x"
    request.messages[0]["metadata"] = {"pinned": True}
    before = copy.deepcopy(request.messages)

    arguments = converse_arguments(request, Settings(cache_config={"strategy": "auto"}))

    assert arguments["messages"][0].keys() == {"role", "content"}
    assert request.messages == before


def test_every_setting_has_its_place_in_the_request(request_of):
    settings = Settings(
        model_id="m", max_tokens=10, temperature=0.0, top_p=0.5, stop_sequences=["END"],
        guardrail_id="g", guardrail_version="3", guardrail_trace="enabled_full",
        guardrail_stream_processing_mode="async",
        additional_request_fields={"top_k": 5}, additional_response_field_paths=["/stop_sequence"],
        additional_args={"performanceConfig": {"latency": "optimized"}}, service_tier="flex",
    )  # fmt: skip

    arguments = converse_arguments(request_of(), settings)

    del arguments["messages"]
    assert arguments == {
        "modelId": "m",
        "inferenceConfig": {"maxTokens": 10, "temperature": 0.0, "topP": 0.5, "stopSequences": ["END"]},
        "guardrailConfig": {
            "guardrailIdentifier": "g",
            "guardrailVersion": "3",
            "trace": "enabled_full",
            "streamProcessingMode": "async",
        },
        "additionalModelRequestFields": {"top_k": 5},
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "flex"},
    }


def test_the_mode_of_streamed_guardrails_is_sent_with_streams_only(request_of):
    settings = Settings(guardrail_id="g", guardrail_stream_processing_mode="sync", streaming=False)

    assert "streamProcessingMode" not in converse_arguments(request_of(), settings)["guardrailConfig"]


# -- tools -------------------------------------------------------------------------------------------------------


def test_a_tool_is_sent_with_what_converse_knows(request_of, spec):
    tool = {**spec("add", "Adds.", type="object", properties={"a": {"type": "integer"}}), "outputSchema": {"json": {}}}

    arguments = converse_arguments(request_of(tool_specs=(tool,)), Settings())

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert arguments["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "add", "description": "Adds.", "inputSchema": {"json": schema}}}]
    }


def test_a_tool_without_description_or_type_gets_what_is_required(request_of, spec):
    tool = spec("add", "  ", properties={})

    sent = converse_arguments(request_of(tool_specs=(tool,)), Settings())["toolConfig"]["tools"][0]["toolSpec"]

    assert sent == {"name": "add", "description": "add", "inputSchema": {"json": {"properties": {}, "type": "object"}}}


@pytest.mark.parametrize("choice", [{"auto": {}}, {"any": {}}, {"tool": {"name": "add"}}])
def test_the_tool_choice_is_sent(request_of, spec, choice):
    request = request_of(tool_specs=(spec(),), tool_choice=choice)

    assert converse_arguments(request, Settings())["toolConfig"]["toolChoice"] == choice


def test_a_forced_tool_switches_thinking_off(request_of, spec):
    settings = Settings(additional_request_fields={"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 5})
    free = request_of(tool_specs=(spec(),), tool_choice={"auto": {}})
    forced = request_of(tool_specs=(spec(),), tool_choice={"tool": {"name": "add"}})

    assert "thinking" in converse_arguments(free, settings)["additionalModelRequestFields"]
    assert converse_arguments(forced, settings)["additionalModelRequestFields"] == {"top_k": 5}


def test_strict_tools_are_marked(request_of, spec):
    arguments = converse_arguments(request_of(tool_specs=(spec(),)), Settings(strict_tools=True))

    assert arguments["toolConfig"]["tools"][0]["toolSpec"]["strict"] is True


def test_tools_of_the_conversation_are_named_when_there_are_none_on_offer(request_of):
    request = request_of("q", ("assistant", USE), ("user", RESULT, {"text": "and now?"}), tool_choice={"any": {}})

    config = converse_arguments(request, Settings())["toolConfig"]

    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["add"]
    assert "toolChoice" not in config


def test_a_result_without_its_use_needs_a_tool_too(request_of):
    arguments = converse_arguments(request_of(("user", RESULT)), Settings())

    assert len(arguments["toolConfig"]["tools"]) == 1


@pytest.mark.parametrize(
    ("model_id", "setting", "sent"),
    [
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "auto", True),
        ("amazon.nova-pro-v1:0", "auto", True),
        ("meta.llama3-1-70b-instruct-v1:0", "auto", False),
        ("meta.llama3-1-70b-instruct-v1:0", True, True),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", False, False),
    ],
)
def test_the_status_of_results_is_sent_to_models_that_take_it(request_of, model_id, setting, sent):
    settings = Settings(model_id=model_id, include_tool_result_status=setting)

    arguments = converse_arguments(request_of("q", ("assistant", USE), ("user", RESULT)), settings)

    assert ("status" in arguments["messages"][2]["content"][0]["toolResult"]) is sent


def test_thinking_is_not_sent_back_to_deepseek(request_of):
    thought = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    request = request_of("q", ("assistant", thought, {"text": "a"}), "q")

    arguments = converse_arguments(request, Settings(model_id="us.deepseek.r1-v1:0"))

    assert arguments["messages"][1]["content"] == [{"text": "a"}]


def test_an_output_schema_is_sent_as_text_format(request_of):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    config = converse_arguments(request_of(output_schema=schema), Settings())["outputConfig"]

    assert config["textFormat"]["type"] == "json_schema"
    assert json.loads(config["textFormat"]["structure"]["jsonSchema"]["schema"]) == schema


def test_only_what_is_counted_is_sent_for_counting(request_of, spec):
    settings = Settings(model_id="m", max_tokens=5, guardrail_id="g", additional_request_fields={"k": 1})

    arguments = count_arguments(request_of(system=({"text": "s"},), tool_specs=(spec(),)), settings)

    assert arguments["modelId"] == "m"
    assert arguments["input"]["converse"].keys() == {
        "messages", "system", "toolConfig", "additionalModelRequestFields",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model_id", "counted"),
    [
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic.claude-sonnet-4-20250514-v1:0"),
        ("global.amazon.nova-2-lite-v1:0", "amazon.nova-2-lite-v1:0"),
        ("anthropic.claude-v2:1", "anthropic.claude-v2:1"),
        (
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0",
            "amazon.nova-lite-v1:0",
        ),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", None),
    ],
)
def test_the_model_counts_not_its_profile(request_of, model_id, counted):
    arguments = count_arguments(request_of(), Settings(model_id=model_id))

    assert arguments["modelId"] == (counted or model_id)


# -- guardrails --------------------------------------------------------------------------------------------------


def test_only_the_last_words_are_guarded_when_asked(request_of):
    image = {"image": {"format": "png", "source": {"bytes": b"x"}}}
    request = request_of("old", ("assistant", {"text": "a"}), ("user", {"text": "new"}, image))

    messages = converse_arguments(request, Settings(guardrail_id="g", guardrail_latest_message=True))["messages"]

    assert messages[0]["content"] == [{"text": "old"}]
    assert messages[2]["content"] == [
        {"guardContent": {"text": {"text": "new"}}},
        {"guardContent": {"image": image["image"]}},
    ]


def test_a_turn_of_tool_results_leaves_the_guard_on_the_question_before_it(request_of):
    request = request_of("q", ("assistant", USE), ("user", RESULT))

    messages = converse_arguments(request, Settings(guardrail_id="g", guardrail_latest_message=True))["messages"]

    assert messages[0]["content"] == [{"guardContent": {"text": {"text": "q"}}}]
    assert "toolResult" in messages[2]["content"][0]


def test_guards_of_the_callers_own_are_left_alone(request_of):
    guarded = {"guardContent": {"text": {"text": "this"}}}
    request = request_of(("user", {"text": "that"}, guarded))

    messages = converse_arguments(request, Settings(guardrail_id="g", guardrail_latest_message=True))["messages"]

    assert messages[0]["content"] == [{"text": "that"}, guarded]


# -- thinking ----------------------------------------------------------------------------------------------------

CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}}
UNSIGNED = {"reasoningContent": {"reasoningText": {"text": "hm, but"}}}
REDACTED = {"reasoningContent": {"redactedContent": b"x"}}
HALF = [
    ((SIGNED, {"text": "so"}), (SIGNED, {"text": "so"})),
    ((SIGNED, REDACTED, USE), (SIGNED, REDACTED, USE)),
    ((UNSIGNED, {"text": "so"}), ({"text": "so"},)),
    ((UNSIGNED,), ({"text": "[blank text]"},)),
    ((SIGNED,), ({"text": "[blank text]"},)),
    (({"text": "so"}, SIGNED, REDACTED), ({"text": "so"},)),
]


@pytest.mark.parametrize("model_id", [CLAUDE, PROFILE])
@pytest.mark.parametrize(("kept", "sent"), HALF)
def test_thinking_that_was_cut_or_is_of_another_model_does_not_make_claude_refuse_the_conversation(
    request_of, model_id, kept, sent
):
    request = request_of("Hi!", ("assistant", *kept), "Go on.")

    assert converse_arguments(request, Settings(model_id=model_id))["messages"][1]["content"] == list(sent)


def test_models_that_sign_nothing_get_their_thinking_back(request_of):
    request = request_of("Hi!", ("assistant", UNSIGNED, USE), ("user", RESULT))

    messages = converse_arguments(request, Settings(model_id="openai.gpt-oss-120b-1:0"))["messages"]

    assert messages[1]["content"] == [UNSIGNED, USE]
