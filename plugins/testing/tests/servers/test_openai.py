"""The server that speaks chat completions, looked at with nothing but the standard library."""

from __future__ import annotations

import pytest

from ropewalk_testing import reasoning, turn, use
from ropewalk_testing.servers import CUT, DONE, OpenAIServer, http_fault, sse, stream_fault

PATH = "/v1/chat/completions"
STREAM = {"model": "some", "stream": True, "stream_options": {"include_usage": True}}


def deltas(reply):
    return [chunk["choices"][0]["delta"] for chunk in reply.chunks[:-1] if chunk["choices"]]


def test_a_turn_is_streamed_in_chunks(connect):
    with OpenAIServer(script=[turn("I add.", use("add", {"a": 1}, id="T1"), deltas=2)]) as server:
        reply = connect(server).post(PATH, STREAM)

    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.chunks[0] == {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "some",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
    }
    head = {"index": 0, "id": "T1", "type": "function", "function": {"name": "add", "arguments": ""}}
    assert deltas(reply)[1:] == [
        {"content": "I a"},
        {"content": "dd."},
        {"tool_calls": [head]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        {},
    ]
    assert reply.chunks[-3]["choices"][0]["finish_reason"] == "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert (reply.chunks[-2]["choices"], reply.chunks[-2]["usage"], reply.chunks[-1]) == ([], usage, "[DONE]")


def test_usage_is_streamed_only_if_asked_for(connect):
    with OpenAIServer(script=["a", turn("a", usage=None)]) as server:
        client = connect(server)
        without = client.post(PATH, {"stream": True}).chunks
        silent = client.post(PATH, STREAM).chunks

    assert not [chunk for chunk in (*without[:-1], *silent[:-1]) if "usage" in chunk]


def test_interleaved_tools_keep_their_indices(connect):
    said = turn("so", use("a", {"x": 1}), use("b", {"y": 2}), deltas=2, interleave=True)
    with OpenAIServer(script=[said]) as server:
        found = deltas(connect(server).post(PATH, STREAM))

    calls = [delta["tool_calls"][0] for delta in found if "tool_calls" in delta]
    assert [call["index"] for call in calls] == [0, 1, 0, 1, 0, 1]
    assert [call["id"] for call in calls if "id" in call] == ["use_1_1", "use_1_2"]


def test_reasoning_is_sent_as_gateways_do(connect):
    said = [reasoning("hm", "c2ln"), {"reasoningContent": {"redactedContent": b"\x01"}}]
    with OpenAIServer(script=[said, said]) as server:
        client = connect(server)
        streamed = deltas(client.post(PATH, STREAM))
        whole = client.post(PATH, {}).json["choices"][0]["message"]

    assert streamed[1:4] == [
        {"reasoning_content": "hm"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]},
        {"thinking_blocks": [{"type": "redacted_thinking", "data": "AQ=="}]},
    ]
    assert (whole["reasoning_content"], len(whole["thinking_blocks"])) == ("hm", 2)


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("content_filtered", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("eos", "eos"),
    ],
)
def test_stop_reasons_are_translated(connect, stop, finish):
    with OpenAIServer(script=[turn("a", stop=stop)] * 2) as server:
        client = connect(server)
        streamed, whole = client.post(PATH, STREAM).chunks[-3], client.post(PATH, {}).json

    assert streamed["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"] == finish


def test_a_call_that_is_not_streamed_gets_json(connect):
    usage = {"inputTokens": 9, "outputTokens": 1, "totalTokens": 10, "cacheReadInputTokens": 8}
    with OpenAIServer(script=[turn("I ", "add.", use("add", '{"a": 1}'), usage=usage)]) as server:
        body = connect(server).post(PATH, {"model": "some"}).json

    called = {"id": "use_1_2", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "I add.", "tool_calls": [called]}
    assert body["object"] == "chat.completion"
    assert body["choices"] == [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    assert body["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 1,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 8},
    }


def test_an_error_is_json_or_a_page(connect):
    script = [http_fault(401, "invalid_api_key", "wrong key"), http_fault(503, body=b"<html>")]
    with OpenAIServer(script=script) as server:
        client = connect(server)
        refused, html = client.post(PATH, STREAM), client.post(PATH, STREAM)

    error = {"message": "wrong key", "type": "invalid_api_key", "param": None, "code": "invalid_api_key"}
    assert (refused.status, refused.json) == (401, {"error": error})
    assert (html.status, html.data) == (503, b"<html>")


def test_a_stream_can_fail_once_it_is_open(connect):
    with OpenAIServer(script=[stream_fault("server_error", "odd", after=["half"])]) as server:
        reply = connect(server).post(PATH, STREAM)

    assert [delta.get("content") for delta in deltas(reply)] == ["", "half"]
    assert reply.chunks[-1] == {
        "error": {"message": "odd", "type": "server_error", "param": None, "code": "server_error"}
    }


def test_a_cut_line_has_no_end(connect):
    with OpenAIServer(script=[turn("half", cut=True)]) as server:
        reply = connect(server).post(PATH, STREAM)

    assert reply.status == 0
    assert b"half" in reply.data
    assert b'finish_reason": "' not in reply.data


def test_a_raw_stream_is_sent_as_it_is(connect):
    chunk = {"choices": [], "id": "mine"}
    script = [turn(raw=[chunk, b"data: \xff\n\n", DONE]), turn(raw=[chunk, CUT])]
    with OpenAIServer(script=script) as server:
        whole, cut = connect(server).post(PATH, STREAM), connect(server).post(PATH, STREAM)

    envelope = {
        "id": "mine",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "some",
        "choices": [],
    }
    assert whole.data == sse(envelope) + b"data: \xff\n\n" + DONE
    assert (cut.status, cut.data) == (0, sse(envelope | {"id": "mine"}))


def test_models_are_listed(connect):
    with OpenAIServer(models=["a", "b"]) as server:
        listed = connect(server).get("/v1/models").json

        assert server.api_base == f"{server.url}/v1"

    assert [each["id"] for each in listed["data"]] == ["a", "b"]


@pytest.mark.parametrize(("path", "body", "status"), [("/v1/embeddings", {}, 404), (PATH, b"{torn", 400)])
def test_what_is_no_call_is_refused(connect, path, body, status):
    with OpenAIServer(script=["unused"]) as server:
        assert connect(server).post(path, body).status == status
        assert server.calls == 0
