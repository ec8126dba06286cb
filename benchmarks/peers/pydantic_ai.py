"""pydantic-ai-slim, with a minimal Model.

Its TestModel and FunctionModel estimate tokens over the whole history at every call, which would be charged to the
framework. It has no session store: the store case appends each turn's new messages to a JSONL file, as it documents.
"""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from harness.driver import Driver
from harness.script import BODY, Script


@dataclass(slots=True)
class Conversation:
    """An agent and its messages, which the framework leaves to the caller."""

    agent: Any
    messages: list[Any]
    store: Path | None


class PydanticAI(Driver):
    """Drives `pydantic_ai.Agent`."""

    name: ClassVar = "pydantic_ai"
    distribution: ClassVar = "pydantic-ai-slim"
    import_statement: ClassVar = "from pydantic_ai import Agent, Tool\nfrom pydantic_ai.models import Model"

    def load(self) -> None:
        """As the base says."""
        import pydantic_ai
        from pydantic_ai import messages
        from pydantic_ai.models import Model, StreamedResponse
        from pydantic_ai.usage import RequestUsage, UsageLimits

        @dataclass
        class FakeStream(StreamedResponse):
            script: Any = None
            made: datetime = field(default_factory=lambda: datetime.now(UTC))

            async def _get_event_iterator(self) -> AsyncIterator[Any]:
                calls = self.script.next()
                parts = self._parts_manager
                if calls is not None:
                    for call_id, name, arguments in calls:
                        yield parts.handle_tool_call_part(
                            vendor_part_id=call_id, tool_name=name, args=arguments, tool_call_id=call_id
                        )
                else:
                    for _ in range(self.script.deltas):
                        for event in parts.handle_text_delta(vendor_part_id="content", content="tok "):
                            yield event

            async def close_stream(self) -> None: ...

            model_name = property(lambda _: "fake")
            provider_name = property(lambda _: None)
            provider_url = property(lambda _: None)
            timestamp = property(lambda self: self.made)

        class Fake(Model):
            def __init__(self, script: Script) -> None:
                super().__init__()
                self._script = script

            async def request(self, _messages: Any, model_settings: Any, model_request_parameters: Any) -> Any:
                self.prepare_request(model_settings, model_request_parameters)
                await self._script.wait()
                calls = self._script.next()
                parts: list[Any] = (
                    [messages.TextPart("tok " * self._script.deltas)]
                    if calls is None
                    else [
                        messages.ToolCallPart(tool_name=name, args=args, tool_call_id=id_) for id_, name, args in calls
                    ]
                )
                usage = RequestUsage(input_tokens=1, output_tokens=1)
                return messages.ModelResponse(parts=parts, usage=usage, model_name="fake")

            @asynccontextmanager
            async def request_stream(
                self, _messages: Any, model_settings: Any, model_request_parameters: Any, _context: Any = None
            ) -> AsyncIterator[Any]:
                _, parameters = self.prepare_request(model_settings, model_request_parameters)
                await self._script.wait()
                yield FakeStream(model_request_parameters=parameters, script=self._script)

            model_name = property(lambda _: "fake")
            system = property(lambda _: "fake")
            provider = property(lambda _: None)

        self._pydantic_ai, self._messages, self._fake = pydantic_ai, messages, Fake
        self._limits = UsageLimits(request_limit=None)

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._pydantic_ai.Tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return self._fake(script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        messages = list(history) or self._read(store)
        return Conversation(self._pydantic_ai.Agent(model, tools=list(tools)), messages, store)

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        m = self._messages
        turn: list[Callable[[int], Any]] = [
            lambda _: m.ModelRequest(parts=[m.UserPromptPart(BODY)]),
            lambda i: m.ModelResponse(parts=[m.ToolCallPart("t0", {"x": 1}, f"h{i}")]),
            lambda i: m.ModelRequest(parts=[m.ToolReturnPart("t0", BODY, f"h{i - 1}")]),
            lambda _: m.ModelResponse(parts=[m.TextPart(BODY)]),
        ]
        return [turn[number % 4](number) for number in range(count)]

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        result = await agent.agent.run(prompt, message_history=agent.messages, usage_limits=self._limits)
        if agent.store is not None:
            with agent.store.open("ab") as file:
                file.write(result.new_messages_json() + b"\n")

        agent.messages = result.all_messages()
        return str(result.output)

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        async with agent.agent.run_stream(prompt, usage_limits=self._limits) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                pieces += 1

        return pieces

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        return Path(path, "turns.jsonl")

    def _read(self, store: Path | None) -> list[Any]:
        if store is None or not store.exists():
            return []

        adapter = self._messages.ModelMessagesTypeAdapter
        return [message for line in store.read_bytes().splitlines() for message in adapter.validate_json(line)]
