"""Anthropic's own protocol, as LiteLLM translates it: thinking with signatures, and cache points."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ropewalk.model import ModelRequest
from ropewalk_litellm import LiteLLMModel

CACHED = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 1}


def block(index, start, *deltas):
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thought(text, *signatures):
    return [
        {"type": "thinking_delta", "thinking": text},
        *({"type": "signature_delta", "signature": s} for s in signatures),
    ]


THINKING = {"type": "thinking", "thinking": "", "signature": ""}
ANSWER = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [],
            "stop_reason": None,
            "usage": CACHED,
        },
    },
    *block(0, THINKING, *thought("a", "UzE=")),
    *block(1, THINKING, *thought("b", "UzI=")),
    *block(2, {"type": "redacted_thinking", "data": "AQ=="}),
    *block(3, {"type": "text", "text": ""}, {"type": "text_delta", "text": "so"}),
    *block(
        4,
        {"type": "tool_use", "id": "T1", "name": "add", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"a"'},
        {"type": "input_json_delta", "partial_json": ": 1}"},
    ),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def anthropic():
    """A model, and the bodies that its server received."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.bodies = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        reach = {"api_base": f"http://127.0.0.1:{server.server_port}", "api_key": "k"}
        yield LiteLLMModel("anthropic/claude-sonnet-4-5", client_args=reach), server.bodies
        server.shutdown()
        thread.join()


ASKED = {
    "role": "user",
    "content": [{"text": "long context"}, {"cachePoint": {"type": "default"}}, {"text": "the time"}],
}
ANSWERED = [
    {"reasoningContent": {"reasoningText": {"text": "a", "signature": "UzE="}}},
    {"reasoningContent": {"reasoningText": {"text": "b", "signature": "UzI="}}},
    {"reasoningContent": {"redactedContent": b"\x01"}},
    {"text": "so"},
    {"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1}}},
]


async def test_thinking_comes_with_its_signatures(anthropic, collect):
    model, _ = anthropic

    events = await collect(model, ModelRequest(messages=[ASKED]))

    blocks = {}
    for event in events:
        if "contentBlockDelta" in event:
            body = event["contentBlockDelta"]
            blocks.setdefault(body["contentBlockIndex"], []).append(body["delta"])

    assert list(blocks.values())[:4] == [
        [{"reasoningContent": {"text": "a"}}, {"reasoningContent": {"signature": "UzE="}}],
        [{"reasoningContent": {"text": "b"}}, {"reasoningContent": {"signature": "UzI="}}],
        [{"reasoningContent": {"redactedContent": b"\x01"}}],
        [{"text": "so"}],
    ]
    assert "".join(delta["toolUse"]["input"] for delta in blocks[4]) == '{"a": 1}'
    assert events[-2] == {"messageStop": {"stopReason": "tool_use"}}
    usage = events[-1]["metadata"]["usage"]
    assert (usage["inputTokens"], usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]) == (10, 70, 20)


async def test_thinking_and_cache_points_go_back_in_anthropics_form(anthropic, collect):
    model, bodies = anthropic
    result = {"toolResult": {"toolUseId": "T1", "status": "error", "content": [{"text": "no"}]}}
    messages = [
        ASKED, {"role": "assistant", "content": ANSWERED},
        {"role": "user", "content": [result, {"cachePoint": {"type": "default"}}, {"text": "and?"}]},
    ]  # fmt: skip

    await collect(
        model, ModelRequest(messages=messages, system=({"text": "be kind"}, {"cachePoint": {"type": "default"}}))
    )

    (body,) = bodies
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "be kind", "cache_control": mark}]
    first, answer, last = body["messages"]
    assert [part.get("cache_control") for part in first["content"]] == [mark, None]
    assert answer["content"] == [
        {"type": "thinking", "thinking": "a", "signature": "UzE="},
        {"type": "thinking", "thinking": "b", "signature": "UzI="},
        {"type": "redacted_thinking", "data": "AQ=="},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "T1", "name": "add", "input": {"a": 1}},
    ]
    tool_result = last["content"][0]
    assert (tool_result["type"], tool_result["tool_use_id"]) == ("tool_result", "T1")
    assert "ephemeral" in json.dumps(tool_result)
    assert "Error: no" in json.dumps(tool_result)
