"""strands-agents with a NullConversationManager: it keeps the whole history, as the other peers do."""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from harness.driver import Driver
from harness.script import BODY, Script

_METADATA: dict[str, Any] = {
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}


async def _events(script: Script) -> AsyncIterator[dict[str, Any]]:
    await script.wait()
    calls = script.next()
    yield {"messageStart": {"role": "assistant"}}
    if calls is not None:
        for call_id, name, arguments in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": call_id, "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}

        yield {"messageStop": {"stopReason": "tool_use"}}
    else:
        yield {"contentBlockStart": {"start": {}}}
        for _ in range(script.deltas):
            yield {"contentBlockDelta": {"delta": {"text": "tok "}}}

        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    yield {"metadata": _METADATA}


class Strands(Driver):
    """Drives `strands.Agent`."""

    name: ClassVar = "strands"
    distribution: ClassVar = "strands-agents"
    import_statement: ClassVar = "from strands import Agent, tool\nfrom strands.models import Model"
    streams_always: ClassVar = True
    keeps_everything: ClassVar = True

    def load(self) -> None:
        """As the base says."""
        import strands
        from strands.agent.conversation_manager import NullConversationManager
        from strands.models import Model

        class Fake(Model):
            def __init__(self, script: Script) -> None:
                self._script = script

            def update_config(self, **_: Any) -> None: ...

            def get_config(self) -> dict[str, Any]:
                return {"context_window_limit": 200_000}

            async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
                yield {}

            def stream(self, *_: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
                return _events(self._script)

        self._strands, self._manager, self._fake = strands, NullConversationManager, Fake

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._strands.tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return self._fake(script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        options: dict[str, Any] = {}
        if store is not None:
            from strands.session.file_session_manager import FileSessionManager

            options["session_manager"] = FileSessionManager(session_id="s", storage_dir=store)

        if self.keeps_everything:
            options["conversation_manager"] = self._manager()

        messages = list(history) or None
        return self._strands.Agent(model=model, tools=list(tools), messages=messages, callback_handler=None, **options)

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        turn: list[Callable[[int], dict[str, Any]]] = [
            lambda _: {"role": "user", "content": [{"text": BODY}]},
            lambda i: {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": f"h{i}", "name": "t0", "input": {"x": 1}}}],
            },
            lambda i: {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": f"h{i - 1}", "status": "success", "content": [{"text": BODY}]}}
                ],
            },
            lambda _: {"role": "assistant", "content": [{"text": BODY}], "metadata": dict(_METADATA)},
        ]
        return [turn[number % 4](number) for number in range(count)]

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        return str(await agent.invoke_async(prompt))

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        async for event in agent.stream_async(prompt):
            pieces += "data" in event

        return pieces

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        return path
