"""A server that speaks Amazon Bedrock's Converse API."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ropewalk.types import ContentBlock
from ropewalk_testing.servers.eventstream import error_frame, event_frame, exception_frame
from ropewalk_testing.servers.faults import CUT, HttpFault, Part, Pause, StreamFault, as_parts
from ropewalk_testing.servers.line import Line, Received
from ropewalk_testing.servers.loopback import LoopbackServer
from ropewalk_testing.servers.wire import json_bytes
from ropewalk_testing.streams import Stream
from ropewalk_testing.turns import Turn

_STREAM: Final = {"Content-Type": "application/vnd.amazon.eventstream", "x-amzn-RequestId": "scripted"}


class BedrockServer(LoopbackServer):
    """Serves `/model/ID/converse-stream`, `/model/ID/converse` and `/model/ID/count-tokens`.

    ```python
    with BedrockServer(script=["hello", http_fault(429)]) as server:
        client = boto3.client("bedrock-runtime", endpoint_url=server.url, region_name="us-east-1", ...)
    ```

    `turn(raw=[...])` takes `(event_type, payload)` pairs, which are framed, and bytes, `pause(...)` and `CUT`; for a
    call that is not streamed one dict, the whole body.

    Attributes:
        token_count: What `count-tokens` answers: a number, a function of the received request, or an `http_fault(...)`.
    """

    def __init__(
        self,
        script: Iterable[Any] | Callable[[Received], Any] = (),
        *,
        token_count: int | HttpFault | Callable[[Received], int] = 42,
    ) -> None:
        """Reads the script; see `LoopbackServer`."""
        super().__init__(script)
        self.token_count = token_count

    def answer(self, received: Received, line: Line) -> None:
        """Answers by path."""
        operation = received.path.rpartition("/")[2]
        if not (received.method == "POST" and received.path.startswith("/model/")):
            self.fault(line, HttpFault(404, "UnknownOperationException", f"no such operation: {received.path}"))
        elif not isinstance(received.body, dict):
            self.fault(line, HttpFault(400, "SerializationException", "the body is no JSON object"))
        elif operation == "converse-stream":
            self.play(received, line, stream=True, headers=_STREAM)
        elif operation == "converse":
            self.play(received, line, stream=False, headers={})
        elif operation == "count-tokens":
            self._count(received, line)
        else:
            self.fault(line, HttpFault(404, "UnknownOperationException", f"no such operation: {operation}"))

    def parts(self, reply: Stream | StreamFault, received: Received, call: int) -> Sequence[Part]:  # noqa: ARG002
        """The frames of a stream."""
        if isinstance(reply, StreamFault):
            begun = Stream(Turn(blocks=reply.after)).named(call)
            failed = exception_frame if reply.modelled else error_frame
            return [*map(_frame, filter(_sent, begun)), failed(reply.code, reply.message)]

        turn = reply.turn
        if turn.raw is not None:
            parts = as_parts(turn.raw, lambda pair: event_frame(*pair))
        else:
            parts = [_frame(event) for event in reply.named(call) if _sent(event)]

        if turn.stall is not None and not reply.silent_first:
            parts.append(Pause(turn.stall))
        if turn.cut:
            parts.append(CUT)

        return [*parts, *map(_frame, reply.tail)]

    def whole(self, reply: Stream, received: Received, call: int) -> Any:  # noqa: ARG002 - the servers' common form
        """The JSON of `converse`."""
        turn = reply.turn
        if turn.raw is not None:
            return turn.raw[0] if turn.raw else {}

        ends: dict[str, Any] = {}
        for event in reply.tail:
            ends.update(event)

        content = [_block(block, f"use_{call}_{index}") for index, block in enumerate(turn.blocks)]
        body = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": ends.get("messageStop", {}).get("stopReason"),
            **ends.get("metadata", {}),
        }
        return {key: value for key, value in body.items() if value is not None}

    def fault(self, line: Line, fault: HttpFault) -> None:
        """Sends an error: its code in a header, its text in the body."""
        if fault.body is not None:
            line.reply(fault.status, {"Content-Type": "text/html", **fault.headers}, fault.body)
            return

        headers: Mapping[str, str] = {
            "Content-Type": "application/json",
            "x-amzn-ErrorType": fault.code,
            "x-amzn-RequestId": "scripted",
            **fault.headers,
        }
        line.reply(fault.status, headers, json_bytes({"message": fault.message}))

    def _count(self, received: Received, line: Line) -> None:
        count = self.token_count
        if isinstance(count, HttpFault):
            self.fault(line, count)
            return

        tokens = count(received) if callable(count) else count
        line.reply(200, {"Content-Type": "application/json"}, json_bytes({"inputTokens": tokens}))


def _sent(event: Mapping[str, Any]) -> bool:
    """Bedrock announces tool uses only; other blocks begin with their first delta."""
    return "contentBlockStart" not in event or bool(event["contentBlockStart"]["start"])


def _frame(event: Mapping[str, Any]) -> bytes:
    ((name, payload),) = event.items()
    return event_frame(name, payload)


def _block(block: ContentBlock, use_id: str) -> dict[str, Any]:
    if "toolUse" not in block:
        return dict(block)

    use: dict[str, Any] = {"toolUseId": use_id, **block["toolUse"]}
    if isinstance(use["input"], str):
        with contextlib.suppress(ValueError):  # what is no JSON stays a text
            use["input"] = json.loads(use["input"] or "{}")

    return {"toolUse": use}
