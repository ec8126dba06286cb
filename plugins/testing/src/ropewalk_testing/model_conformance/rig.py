"""The model under test, with what a test can see of it, and the requests that it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import fields
from typing import Any, Final, TypeAlias

import pytest

from ropewalk.model import ModelRequest
from ropewalk_testing.answers import Answer, answer_of
from ropewalk_testing.servers.wire import json_bytes
from ropewalk_testing.turns import use

SECONDS: Final = 60.0
"""After so long a call that hangs fails its test."""

POLLS: Final = 500
"""How often, a hundredth of a second apart, a test looks whether a stream has ended."""

ODD_TEXT: Final = "naïve 名前 🙂 \u2028 \\ \" ' </s> {x}"

PICK: Final[Any] = {
    "name": "pick",
    "description": "Picks a colour.",
    "inputSchema": {
        "json": {
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
            "required": ["colour"],
        }
    },
}

RICH: Final[Any] = (
    {"role": "user", "content": [{"text": "Pick."}, {"text": ODD_TEXT}]},
    {
        "role": "assistant",
        "content": [{"text": "I pick."}, use("pick", {"colour": "red"}, id="T1"), use("pick", id="T2")],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "T1", "status": "success", "content": [{"text": "picked red"}]}},
            {"toolResult": {"toolUseId": "T2", "status": "error", "content": [{"json": {"missing": ["colour"]}}]}},
        ],
    },
)
"""A history with what most conversations have."""


class Rig:
    """A model under test, and the server behind it, when there is one that the test can look at."""

    def __init__(self, made: Any) -> None:
        self.model, self.server = made if isinstance(made, tuple) else (made, None)

    async def play(self, request: ModelRequest) -> list[Any]:
        """All events of one call."""
        async with asyncio.timeout(SECONDS), aclosing(self.model.stream(request)) as stream:
            return [event async for event in stream]

    async def answer(self, request: ModelRequest | None = None) -> Answer:
        """The answer to one call, taken apart."""
        return answer_of(await self.play(request or ask()))

    def sent(self) -> str:
        """What arrived with the latest call, as JSON."""
        if not getattr(self.server, "requests", None):
            pytest.skip("what was sent cannot be seen: model_for gives no server")

        latest = self.server.requests[-1]
        if isinstance(latest, ModelRequest):
            names = [field.name for field in fields(latest) if field.name != "invocation_state"]
            return json_bytes({name: getattr(latest, name) for name in names}).decode()

        return json_bytes(latest.body).decode()

    async def stalled(self) -> None:
        """Waits until the answer has fallen silent."""
        await _until(self.server.stalled.is_set, "the server did not fall silent")

    async def closed(self) -> None:
        """Waits until no stream is open at the server."""
        if self.server is not None:
            await _until(lambda: not self._open(), "the stream was not closed at the server's end")

    def _open(self) -> int:
        streams = getattr(self.server, "open_streams", None)
        return self.server.active if streams is None else streams  # type: ignore[no-any-return]


RigMaker: TypeAlias = Callable[[Sequence[Any]], Rig]


def ask(text: str = "Hello.", **options: Any) -> ModelRequest:
    """A request of one user message."""
    return ModelRequest(messages=[{"role": "user", "content": [{"text": text}]}], **options)


async def _until(true: Callable[[], Any], complaint: str) -> None:
    for _ in range(POLLS):
        if true():
            return

        await asyncio.sleep(0.01)

    raise AssertionError(complaint)
