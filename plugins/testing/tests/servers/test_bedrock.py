"""The server that speaks Bedrock's Converse API, looked at with nothing but the standard library."""

from __future__ import annotations

import pytest

from ropewalk_testing import reasoning, turn, use
from ropewalk_testing.servers import CUT, BedrockServer, event_frame, http_fault, stream_fault

STREAM = "/model/us.some%3A0/converse-stream"
WHOLE = "/model/us.some%3A0/converse"


def test_a_turn_is_streamed_in_frames(connect):
    with BedrockServer(script=[turn("I add.", use("add", {"a": 1}, id="T1"), deltas=2)]) as server:
        reply = connect(server).post(STREAM, {"messages": []})

    assert reply.headers["content-type"] == "application/vnd.amazon.eventstream"
    assert reply.events == [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "I a"}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "dd."}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "T1", "name": "add"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a"'}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ": 1}"}}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("messageStop", {"stopReason": "tool_use"}),
        (
            "metadata",
            {"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, "metrics": {"latencyMs": 0}},
        ),
    ]


def test_reasoning_has_its_bytes_as_base64(connect):
    said = [reasoning("hm", "c2ln"), {"reasoningContent": {"redactedContent": b"\x01"}}]
    with BedrockServer(script=[said]) as server:
        events = connect(server).post(STREAM).events

    deltas = [payload["delta"]["reasoningContent"] for name, payload in events if name == "contentBlockDelta"]
    assert deltas == [{"text": "hm"}, {"signature": "c2ln"}, {"redactedContent": "AQ=="}]


def test_blocks_can_be_interleaved(connect):
    with BedrockServer(script=[turn(use("a", {"x": 1}), use("b", {}), deltas=2, interleave=True)]) as server:
        events = connect(server).post(STREAM).events

    assert [(name, payload["contentBlockIndex"]) for name, payload in events[1:-2]] == [
        ("contentBlockStart", 0),
        ("contentBlockStart", 1),
        ("contentBlockDelta", 0),
        ("contentBlockDelta", 1),
        ("contentBlockDelta", 0),
        ("contentBlockDelta", 1),
        ("contentBlockStop", 0),
        ("contentBlockStop", 1),
    ]


def test_a_call_that_is_not_streamed_gets_json(connect):
    said = turn("I add.", use("add", '{"a": 1}'), reasoning("hm"), usage=(3, 4))
    with BedrockServer(script=[said, turn(raw=[{"odd": 1}])]) as server:
        client = connect(server)
        body, odd = client.post(WHOLE).json, client.post(WHOLE).json

    assert odd == {"odd": 1}
    assert body == {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"text": "I add."},
                    {"toolUse": {"toolUseId": "use_1_1", "name": "add", "input": {"a": 1}}},
                    {"reasoningContent": {"reasoningText": {"text": "hm"}}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        "metrics": {"latencyMs": 0},
    }


@pytest.mark.parametrize("path", [STREAM, WHOLE])
def test_an_error_has_its_code_in_a_header(connect, path):
    page = b"<html>bad gateway</html>"
    script = [http_fault(429, message="slow", headers={"Retry-After": "3"}), http_fault(502, body=page)]
    with BedrockServer(script=script) as server:
        client = connect(server)
        slow, html = client.post(path), client.post(path)

        assert server.connections == 1

    assert (slow.status, slow.headers["x-amzn-errortype"], slow.headers["retry-after"]) == (
        429,
        "ThrottlingException",
        "3",
    )
    assert slow.json == {"message": "slow"}
    assert (html.status, html.headers["content-type"], html.data) == (502, "text/html", page)
    assert "x-amzn-errortype" not in html.headers


def test_a_stream_can_fail_once_it_is_open(connect):
    script = [
        stream_fault("throttlingException", "slow", after=["half"]),
        stream_fault("internal", "odd", modelled=False),
    ]
    with BedrockServer(script=script) as server:
        client = connect(server)
        modelled, other = client.post(STREAM), client.post(STREAM)

    assert modelled.status == 200
    assert [name for name, _ in modelled.events] == [
        "messageStart",
        "contentBlockDelta",
        "contentBlockStop",
        "throttlingException",
    ]
    assert modelled.events[-1] == ("throttlingException", {"message": "slow"})
    assert other.events[-1] == ("internal", "odd")


def test_a_failure_of_a_stream_is_an_error_where_nothing_is_streamed(connect):
    with BedrockServer(script=[stream_fault("modelStreamErrorException", "odd")]) as server:
        reply = connect(server).post(WHOLE)

    assert (reply.status, reply.headers["x-amzn-errortype"]) == (500, "ModelStreamErrorException")


@pytest.mark.parametrize(("path", "seen"), [(STREAM, b"messageStart"), (WHOLE, b'{"output"')])
def test_a_cut_line_has_no_end(connect, path, seen):
    with BedrockServer(script=[turn("half", cut=True)]) as server:
        reply = connect(server).post(path)

    assert reply.status == 0
    assert seen in reply.data
    assert b"messageStop" not in reply.data


def test_a_raw_stream_is_sent_as_it_is(connect):
    torn = event_frame("messageStop", {"stopReason": "end_turn"})[:20]
    with BedrockServer(script=[turn(raw=[("odd", {"a": [None]}), b"", torn]), turn(raw=[b"x", CUT, b"y"])]) as server:
        whole, cut = connect(server).post(STREAM), connect(server).post(STREAM)

    assert (whole.status, whole.data) == (200, event_frame("odd", {"a": [None]}) + torn)
    assert (cut.status, cut.data) == (0, b"x")


def test_tokens_are_counted(connect):
    with BedrockServer(token_count=lambda received: len(received.body)) as server:
        client = connect(server)
        path = "/model/some/count-tokens"
        assert client.post(path, {"a": 1, "b": 2}).json == {"inputTokens": 2}
        server.token_count = 7
        assert client.post(path).json == {"inputTokens": 7}
        server.token_count = http_fault(400, "ValidationException", "this model does not count")
        assert client.post(path).json == {"message": "this model does not count"}
        assert server.calls == 0


def test_what_was_received_is_kept(connect):
    with BedrockServer(script=["ok"]) as server:
        connect(server).post(STREAM, {"messages": ["ü"]}, {"Authorization": "AWS4-HMAC-SHA256 x"})
        (received,) = server.requests

    assert (received.method, received.path, received.model) == ("POST", STREAM, "us.some:0")
    assert (received.headers["authorization"], received.body) == ("AWS4-HMAC-SHA256 x", {"messages": ["ü"]})


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/model/x/invoke", {}, 404, "UnknownOperationException"),
        ("/other", {}, 404, "UnknownOperationException"),
        (STREAM, b"{torn", 400, "SerializationException"),
        (STREAM, [], 400, "SerializationException"),
    ],
)
def test_what_is_no_call_is_refused(connect, path, body, status, code):
    with BedrockServer(script=["unused"]) as server:
        reply = connect(server).post(path, body)

        assert server.calls == 0

    assert (reply.status, reply.headers["x-amzn-errortype"]) == (status, code)
