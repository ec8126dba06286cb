"""A server that speaks OpenAI's chat completions API, as many others do."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ropewalk_testing.servers.faults import CUT, HttpFault, Part, Pause, StreamFault, as_parts
from ropewalk_testing.servers.line import Line, Received
from ropewalk_testing.servers.loopback import LoopbackServer
from ropewalk_testing.servers.wire import json_bytes
from ropewalk_testing.streams import Stream
from ropewalk_testing.turns import Turn

DONE: Final = b"data: [DONE]\n\n"
"""The last line of a stream."""

FINISH_REASONS: Final = {
    "content_filtered": "content_filter",
    "end_turn": "stop",
    "guardrail_intervened": "content_filter",
    "max_tokens": "length",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}
_CREATED: Final = 1_700_000_000
_STREAM: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


def sse(data: Any) -> bytes:
    """One event of a stream: `data: JSON`, or the bytes given."""
    return b"data: " + (data if isinstance(data, bytes) else json_bytes(data)) + b"\n\n"


class OpenAIServer(LoopbackServer):
    """Serves `/v1/chat/completions`, streamed and not, and `/v1/models`.

    `turn(raw=[...])` takes chunks, which get what they lack of `id`, `object`, `created` and `model`, and bytes,
    `pause(...)` and `CUT`; nothing is added, not even `DONE`. For a call that is not streamed it takes one dict, the
    whole body.

    Attributes:
        models: The ids that `/v1/models` lists.
    """

    def __init__(
        self, script: Iterable[Any] | Callable[[Received], Any] = (), *, models: Sequence[str] = ("scripted",)
    ) -> None:
        """Reads the script; see `LoopbackServer`."""
        super().__init__(script)
        self.models = tuple(models)

    @property
    def api_base(self) -> str:
        """`http://127.0.0.1:PORT/v1`."""
        return f"{self.url}/v1"

    def answer(self, received: Received, line: Line) -> None:
        """Answers by path."""
        path = received.path.removeprefix("/v1")
        if path == "/models" and received.method == "GET":
            listed = [{"id": each, "object": "model", "created": _CREATED, "owned_by": "test"} for each in self.models]
            line.reply(200, {"Content-Type": "application/json"}, json_bytes({"object": "list", "data": listed}))
        elif not (path == "/chat/completions" and received.method == "POST"):
            self.fault(line, HttpFault(404, "not_found", f"no such path: {received.method} {received.path}"))
        elif not isinstance(received.body, dict):
            self.fault(line, HttpFault(400, "invalid_request_error", "the body is no JSON object"))
        else:
            self.play(received, line, stream=bool(received.body.get("stream")), headers=_STREAM)

    def parts(self, reply: Stream | StreamFault, received: Received, call: int) -> Sequence[Part]:
        """The events of a stream."""

        def send(chunk: Mapping[str, Any]) -> bytes:
            return sse({**_envelope(received, call), **chunk})

        if isinstance(reply, StreamFault):
            begun = Stream(Turn(blocks=reply.after))
            return [*map(send, _chunks(begun, call)), sse(_error(reply.code, reply.message))]

        turn = reply.turn
        parts = as_parts(_chunks(reply, call) if turn.raw is None else turn.raw, send)
        if turn.stall is not None and not reply.silent_first:
            parts.append(Pause(turn.stall))
        if turn.cut:
            parts.append(CUT)
        if turn.raw is None:
            parts += map(send, _end(reply, usage=_wants_usage(received)))
            parts.append(DONE)

        return parts

    def whole(self, reply: Stream, received: Received, call: int) -> Any:
        """The JSON of an answer that is not streamed."""
        turn = reply.turn
        if turn.raw is not None:
            return turn.raw[0] if turn.raw else {}

        envelope = {**_envelope(received, call), "object": "chat.completion"}
        choice = {"index": 0, "message": _message(reply, call), "finish_reason": _finish(reply)}
        usage = _usage(reply)
        return {**envelope, "choices": [choice], **({} if usage is None else {"usage": usage})}

    def fault(self, line: Line, fault: HttpFault) -> None:
        """Sends an error as JSON, or as the page that was given."""
        if fault.body is not None:
            line.reply(fault.status, {"Content-Type": "text/html", **fault.headers}, fault.body)
        else:
            headers = {"Content-Type": "application/json", **fault.headers}
            line.reply(fault.status, headers, json_bytes(_error(fault.code, fault.message)))


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def _envelope(received: Received, call: int) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{call}",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": received.model,
    }


def _wants_usage(received: Received) -> bool:
    return bool((received.body.get("stream_options") or {}).get("include_usage"))


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _chunks(stream: Stream, call: int) -> Iterator[dict[str, Any]]:
    """What a turn says, without its end."""
    places: dict[int, int] = {}
    for event in stream.named(call):
        ((kind, payload),) = event.items()
        if kind == "messageStart":
            yield _choice({"role": "assistant", "content": ""})
        elif kind == "contentBlockStart" and payload["start"]:
            use = payload["start"]["toolUse"]
            place = places[payload["contentBlockIndex"]] = len(places)
            yield _choice({"tool_calls": [_call(place, use["toolUseId"], use["name"], "")]})
        elif kind == "contentBlockDelta":
            delta = _delta(payload["delta"], places.get(payload["contentBlockIndex"], 0))
            if delta:
                yield _choice(delta)


def _delta(delta: Mapping[str, Any], place: int) -> dict[str, Any]:
    if "text" in delta:
        return {"content": delta["text"]}
    if "toolUse" in delta:
        return {"tool_calls": [{"index": place, "function": {"arguments": delta["toolUse"]["input"]}}]}
    if "reasoningContent" in delta:
        return _thought(delta["reasoningContent"])

    return {}  # citations have no form here


def _thought(piece: Mapping[str, Any]) -> dict[str, Any]:
    """Reasoning as gateways send it: its text by itself, signatures and redacted parts in `thinking_blocks`."""
    if "text" in piece:
        return {"reasoning_content": piece["text"]}
    if "signature" in piece:
        return {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": piece["signature"]}]}

    data = base64.b64encode(piece["redactedContent"]).decode()
    return {"thinking_blocks": [{"type": "redacted_thinking", "data": data}]}


def _call(place: int | None, use_id: str, name: str, arguments: str) -> dict[str, Any]:
    called = {"id": use_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return called if place is None else {"index": place, **called}


def _end(stream: Stream, *, usage: bool) -> Iterator[dict[str, Any]]:
    yield _choice({}, _finish(stream))
    counted = _usage(stream)
    if usage and counted is not None:
        yield {"choices": [], "usage": counted}


def _finish(stream: Stream) -> str | None:
    stops = [event["messageStop"]["stopReason"] for event in stream.tail if "messageStop" in event]
    return FINISH_REASONS.get(stops[0], stops[0]) if stops else None


def _usage(stream: Stream) -> dict[str, Any] | None:
    for event in stream.tail:
        if "metadata" in event:
            usage = event["metadata"]["usage"]
            counted = {
                "prompt_tokens": usage["inputTokens"],
                "completion_tokens": usage["outputTokens"],
                "total_tokens": usage["totalTokens"],
            }
            if "cacheReadInputTokens" in usage:
                counted["prompt_tokens_details"] = {"cached_tokens": usage["cacheReadInputTokens"]}

            return counted

    return None


def _message(stream: Stream, call: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    for index, block in enumerate(stream.turn.blocks):
        if "text" in block:
            message["content"] = (message["content"] or "") + block["text"]
        elif "toolUse" in block:
            use: Mapping[str, Any] = block["toolUse"]
            given = use["input"] if isinstance(use["input"], str) else json.dumps(use["input"])
            calls.append(_call(None, use.get("toolUseId", f"use_{call}_{index}"), use["name"], given))
        elif "reasoningContent" in block:
            thoughts.append(_thinking(block["reasoningContent"]))

    if calls:
        message["tool_calls"] = calls
    if thoughts:
        message["reasoning_content"] = "".join(each.get("thinking", "") for each in thoughts)
        message["thinking_blocks"] = thoughts

    return message


def _thinking(content: Mapping[str, Any]) -> dict[str, Any]:
    if "redactedContent" in content:
        return {"type": "redacted_thinking", "data": base64.b64encode(content["redactedContent"]).decode()}

    thought = content["reasoningText"]
    signed = {"signature": thought["signature"]} if "signature" in thought else {}
    return {"type": "thinking", "thinking": thought["text"], **signed}
