"""The model against a server that speaks Bedrock's protocol, through the real boto3."""

from __future__ import annotations

import os

import pytest

from ropewalk.errors import IncompleteStreamError, ModelError
from ropewalk.model import Model
from ropewalk_bedrock import BedrockModel
from ropewalk_testing import text, turn, use
from ropewalk_testing.servers import event_frame, http_fault


def test_it_is_a_model():
    assert isinstance(BedrockModel(), Model)


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
async def test_a_tool_turn_through_boto3(bedrock, request_of, streaming, outcome):
    script = [turn(text("I add."), use("add", {"a": 1, "b": [True, None, "zwölf"]}, id="T1"), deltas=5, usage=(11, 7))]
    model, server = bedrock(script, streaming=streaming)

    result = await outcome(model, request_of())

    assert result.message["content"] == [
        {"text": "I add."},
        {"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1, "b": [True, None, "zwölf"]}}},
    ]
    assert (result.stop_reason, result.usage["inputTokens"], result.usage["outputTokens"]) == ("tool_use", 11, 7)
    (received,) = server.requests
    assert received.path.endswith("/converse-stream" if streaming else "/converse")
    assert received.model == model.model_id


async def test_a_request_is_signed(bedrock, request_of, drain):
    model, server = bedrock(["hi"], region_name="eu-west-1")

    await drain(model, request_of())

    headers = server.requests[0].headers
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=test-key/")
    assert "/eu-west-1/bedrock/aws4_request" in headers["authorization"]
    assert "ropewalk" in headers["user-agent"]


@pytest.fixture
def authorization(request_of, drain):
    """What a model would send as authorization over TLS; nothing leaves the process."""

    async def send(model):
        sent = []

        def capture(request, **_):
            sent.append(request.headers["Authorization"].decode())
            raise ConnectionError("far enough")

        model._source.get().meta.events.register("before-send.bedrock-runtime.*", capture)
        with pytest.raises(ModelError):
            await drain(model, request_of())

        return sent[0]

    return send


async def test_an_api_key_takes_the_place_of_the_signature(authorization):
    model = BedrockModel(api_key="bedrock-key-1")

    assert await authorization(model) == "Bearer bedrock-key-1"
    assert "AWS_BEARER_TOKEN_BEDROCK" not in os.environ
    assert "bedrock-key-1" not in repr(model)


async def test_an_api_key_of_the_environment_is_used(monkeypatch, authorization):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-2")

    assert await authorization(BedrockModel()) == "Bearer bedrock-key-2"


async def test_a_session_brings_credentials_and_region(bedrock, request_of, drain):
    import boto3

    session = boto3.Session(aws_access_key_id="of-session", aws_secret_access_key="s", region_name="ap-south-1")
    model, server = bedrock(["hi"], boto_session=session)

    await drain(model, request_of())

    assert "Credential=of-session/" in server.requests[0].headers["authorization"]
    assert "/ap-south-1/" in server.requests[0].headers["authorization"]


def test_a_session_and_an_api_key_are_refused():
    with pytest.raises(ValueError, match="give one of them"):
        BedrockModel(boto_session=object(), api_key="k")


async def test_settings_may_change_between_calls(bedrock, request_of, drain):
    model, server = bedrock(["hi", "ho"])

    await drain(model, request_of())
    model.update_config(temperature=0.3, model_id="amazon.nova-lite-v1:0")
    await drain(model, request_of())

    assert "inferenceConfig" not in server.requests[0].body
    assert server.requests[1].body["inferenceConfig"] == {"temperature": 0.3}
    assert server.requests[1].model == "amazon.nova-lite-v1:0"


async def test_an_arn_is_a_model_id(bedrock, request_of, drain):
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
    model, server = bedrock(["hi"], model_id=arn)

    await drain(model, request_of())

    assert server.requests[0].model == arn


async def test_thinking_and_media_go_over_the_wire_as_bytes(bedrock, request_of, outcome):
    thought = {"reasoningContent": {"redactedContent": b"\x00\x01\xff"}}
    model, server = bedrock([[thought, text("so")], "ok"])

    first = await outcome(model, request_of())
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    request = request_of("q", ("assistant", *first.message["content"]), ("user", image, {"text": "what is it?"}))
    await outcome(model, request)

    assert first.message["content"][0] == thought
    messages = server.requests[1].body["messages"]
    assert messages[1]["content"][0] == {"reasoningContent": {"redactedContent": "AAH/"}}
    assert messages[2]["content"][0] == {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}


async def test_citations_are_kept_and_sent_back(bedrock, request_of, outcome):
    citation = {"title": "T", "sourceContent": [{"text": "c"}], "location": {"documentChar": {"documentIndex": 0}}}
    events = [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "as said"}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"citation": citation}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
    ]
    model, server = bedrock([turn(raw=events), "ok"])

    first = await outcome(model, request_of())
    await outcome(model, request_of("q", ("assistant", *first.message["content"]), "more"))

    block = {"citationsContent": {"content": [{"text": "as said"}], "citations": [citation]}}
    assert first.message["content"] == [block]
    assert server.requests[1].body["messages"][1]["content"] == [block]


# -- odd streams -------------------------------------------------------------------------------------------------


def said(index, piece):
    return ("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})


START, STOP = ("messageStart", {"role": "assistant"}), ("messageStop", {"stopReason": "end_turn"})
END = ("contentBlockStop", {"contentBlockIndex": 0})

ODD = {
    "unknown events": [("novelty", {"a": 1}), START, ("ping", {}), said(0, "hi"), END, STOP],
    "unknown deltas": [
        START,
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"smell": "x"}}),
        said(0, "hi"),
        STOP,
    ],
    "nulls": [START, ("contentBlockDelta", {"contentBlockIndex": 0, "delta": None}), said(0, "hi"), END, STOP],
    "no block stop": [START, said(0, "hi"), STOP],
    "two block stops": [START, said(0, "hi"), END, END, STOP],
    "two message stops": [START, said(0, "hi"), END, STOP, STOP],
    "no start": [said(0, "hi"), END, STOP],
    "stop before the text": [STOP, START, said(0, "hi"), END],
    "no role": [("messageStart", {}), said(0, "hi"), STOP],
    "null usage": [START, said(0, "hi"), END, STOP, ("metadata", {"usage": None, "metrics": None})],
    "an empty body": [START, said(0, "hi"), ("contentBlockStop", {}), STOP],
}


@pytest.mark.parametrize("events", ODD.values(), ids=ODD)
async def test_an_odd_stream_still_says_what_it_says(bedrock, request_of, events, outcome):
    model, _ = bedrock([turn(raw=events)])

    result = await outcome(model, request_of())

    assert result.message["content"] == [{"text": "hi"}]
    assert result.stop_reason == "end_turn"


async def test_an_unknown_stop_reason_passes_through(bedrock, request_of, outcome):
    model, _ = bedrock([turn("hi", stop="out_of_ink")])

    assert (await outcome(model, request_of())).stop_reason == "out_of_ink"


async def test_an_answer_cut_by_the_full_window_is_one_cut_at_the_token_limit(bedrock, request_of, outcome):
    model, _ = bedrock([turn("hi", stop="model_context_window_exceeded")])

    assert (await outcome(model, request_of())).stop_reason == "max_tokens"


async def test_a_giant_delta_is_one_text(bedrock, request_of, outcome):
    model, _ = bedrock([turn("x" * 3_000_000)])

    assert len((await outcome(model, request_of())).message["content"][0]["text"]) == 3_000_000


async def test_an_event_that_comes_byte_by_byte_is_one_event(bedrock, request_of, outcome):
    frames = b"".join(event_frame(*event) for event in (START, said(0, "hi"), END, STOP))
    model, _ = bedrock([turn(raw=[bytes([byte]) for byte in frames])])

    assert (await outcome(model, request_of())).message["content"] == [{"text": "hi"}]


@pytest.mark.parametrize("events", [[], [START], [START, said(0, "hi"), END]], ids=["nothing", "start", "no stop"])
async def test_a_stream_that_just_ends_is_incomplete(bedrock, request_of, events, outcome):
    model, _ = bedrock([turn(raw=events)])

    with pytest.raises(IncompleteStreamError):
        await outcome(model, request_of())


# -- counting ----------------------------------------------------------------------------------------------------


def test_the_provider_counts_when_asked(bedrock, request_of, spec):
    model, server = bedrock([], token_count=123, use_native_token_count=True)

    assert model.count_tokens(request_of(system=({"text": "s"},), tool_specs=(spec(),))) == 123
    assert server.requests[0].path.endswith("/count-tokens")


async def test_counting_does_not_block_the_loop(bedrock, request_of):
    model, _ = bedrock([], token_count=7, use_native_token_count=True)

    assert await model.count_tokens_async(request_of()) == 7


def test_tokens_are_estimated_without_being_asked(bedrock, request_of):
    model, server = bedrock([])

    assert 0 < model.count_tokens(request_of("Hello, how are you?")) < 20
    assert server.requests == []


def test_a_model_that_cannot_count_is_asked_once(bedrock, request_of, caplog):
    refused = http_fault(400, "ValidationException", "The provided model doesn't support counting tokens.")
    model, server = bedrock([], token_count=refused, use_native_token_count=True)

    counts = [model.count_tokens(request_of("Hello")) for _ in range(3)]

    assert len(server.requests) == 1
    assert counts[0] == counts[1] == counts[2] > 0
    assert "doesn't support counting tokens" in caplog.text


def test_a_passing_fault_does_not_end_counting(bedrock, request_of):
    model, server = bedrock([], token_count=http_fault(503, "ServiceUnavailableException"), use_native_token_count=True)

    assert model.count_tokens(request_of()) > 0
    server.token_count = 5
    assert model.count_tokens(request_of()) == 5
