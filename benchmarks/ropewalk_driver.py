"""Ropewalk, with the plugins that are active unasked in this environment, and no console."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from harness.driver import Driver
from harness.script import BODY, Script

if TYPE_CHECKING:
    from ropewalk import ModelRequest


class FakeModel:
    """Says what the script says, in Converse events."""

    context_window = 200_000

    def __init__(self, script: Script) -> None:
        self._script = script

    async def stream(self, _request: ModelRequest) -> AsyncIterator[dict[str, Any]]:
        """Yields the events of one turn."""
        await self._script.wait()
        calls = self._script.next()
        yield {"messageStart": {"role": "assistant"}}
        if calls is not None:
            for at, (call_id, name, arguments) in enumerate(calls):
                start = {"toolUse": {"toolUseId": call_id, "name": name}}
                delta = {"toolUse": {"input": json.dumps(arguments)}}
                yield {"contentBlockStart": {"contentBlockIndex": at, "start": start}}
                yield {"contentBlockDelta": {"contentBlockIndex": at, "delta": delta}}
                yield {"contentBlockStop": {"contentBlockIndex": at}}

            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            for _ in range(self._script.deltas):
                yield {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "tok "}}}

            yield {"contentBlockStop": {"contentBlockIndex": 0}}
            yield {"messageStop": {"stopReason": "end_turn"}}

        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


class Ropewalk(Driver):
    """Drives `ropewalk.Agent`."""

    name: ClassVar = "ropewalk"
    distribution: ClassVar = "ropewalk-core"
    import_statement: ClassVar = "from ropewalk import Agent, tool"
    streams_always: ClassVar = True

    def load(self) -> None:
        """As the base says."""
        from ropewalk import Agent, tool

        self._agent, self._tool = Agent, tool

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return FakeModel(script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        options: dict[str, Any] = {}
        if store is not None:  # the peers keep the whole conversation too
            options["plugins"] = ["-window"]

        if store:
            from ropewalk import FileSessionManager

            options["session_manager"] = FileSessionManager("s", store)

        given = list(history) or None
        return self._agent(model=model, tools=list(tools), messages=given, callback_handler=None, **options)

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        messages: list[dict[str, Any]] = []
        for number in range(count):
            use_id = f"h{number // 4}"
            use = {"toolUseId": use_id, "name": "t0", "input": {"x": 1}}
            result = {"toolUseId": use_id, "status": "success", "content": [{"text": BODY}]}
            content: dict[str, Any] = ({"text": BODY}, {"toolUse": use}, {"toolResult": result}, {"text": BODY})[
                number % 4
            ]
            messages.append({"role": "assistant" if number % 2 else "user", "content": [content]})

        return messages

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        return str(await agent.invoke_async(prompt))

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        async for event in agent.stream_async(prompt):
            pieces += "data" in event

        return pieces

    async def open_memory(self) -> Any:
        """As the base says."""
        return ""

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        return path
