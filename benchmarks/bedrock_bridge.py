"""What the bridge from boto3's blocking stream into the event loop costs.

    python benchmarks/bedrock_bridge.py

Reads the same streams from a server on loopback in two ways, turn about: plain boto3 in a blocking loop, and
`BedrockModel.stream` on an event loop. Prints the medians and their ratio.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from ropewalk import ModelRequest
from ropewalk_bedrock import BedrockModel
from ropewalk_testing import turn
from ropewalk_testing.servers import BedrockServer, event_frame

DELTAS = 2_000
ROUNDS = 15


def frames() -> bytes:
    """One stream, as one piece, so that the server's own work is small."""
    deltas = [
        event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": f"word {n} "}})
        for n in range(DELTAS)
    ]
    ends = [event_frame("contentBlockStop", {"contentBlockIndex": 0})]
    ends += [event_frame("messageStop", {"stopReason": "end_turn"})]
    return b"".join([event_frame("messageStart", {"role": "assistant"}), *deltas, *ends])


def timed(work: Callable[[], int]) -> float:
    """Seconds of one round."""
    begin = time.perf_counter()
    count = work()
    seconds = time.perf_counter() - begin
    if count < DELTAS:
        raise RuntimeError(f"{count} events came instead of {DELTAS}")

    return seconds


def main() -> None:
    """Measures and prints."""
    os.environ.update(AWS_ACCESS_KEY_ID="of", AWS_SECRET_ACCESS_KEY="nobody", AWS_REGION="us-west-2")  # noqa: S106 - of nobody
    body = frames()
    messages: list[Any] = [{"role": "user", "content": [{"text": "go"}]}]
    with BedrockServer(lambda _: turn(raw=[body])) as server:
        model = BedrockModel(endpoint_url=server.url)
        client = BedrockModel(endpoint_url=server.url)._source.get()  # noqa: SLF001 - the same client, used plainly
        loop = asyncio.new_event_loop()

        def plain() -> int:
            return sum(1 for _ in client.converse_stream(modelId="m", messages=messages)["stream"])

        async def read() -> int:
            return len([event async for event in model.stream(ModelRequest(messages=messages))])

        def bridged() -> int:
            return loop.run_until_complete(read())

        plain(), bridged()
        rounds = [(timed(plain), timed(bridged)) for _ in range(ROUNDS)]
        loop.close()

    plainly, across = (statistics.median(each) for each in zip(*rounds, strict=True))
    print(f"plain boto3   {plainly / DELTAS * 1e6:7.1f} us an event")
    print(f"across        {across / DELTAS * 1e6:7.1f} us an event")
    print(f"ratio         {statistics.median(b / a for a, b in rounds):7.2f}")


if __name__ == "__main__":
    main()
