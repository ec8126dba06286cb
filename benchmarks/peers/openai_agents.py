"""openai-agents. Tracing is off: its default exporter wants a key."""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from harness.driver import Driver
from harness.script import BODY, UID, Script

_MANY: Final = 10**6


@dataclass(slots=True)
class Conversation:
    """An agent and its items, which the framework leaves to the caller."""

    agent: Any
    items: list[Any]
    session: Any


class OpenAIAgents(Driver):
    """Drives `agents.Runner`."""

    name: ClassVar = "openai_agents"
    distribution: ClassVar = "openai-agents"
    import_statement: ClassVar = (
        "from agents import Agent, Runner, function_tool, set_tracing_disabled, SQLiteSession\n"
        "from agents.models.interface import Model"
    )

    def load(self) -> None:
        """As the base says."""
        import agents
        from agents.models.interface import Model
        from openai.types import responses as r

        agents.set_tracing_disabled(True)

        def items(script: Script) -> list[Any]:
            calls = script.next()
            if calls is not None:
                return [
                    r.ResponseFunctionToolCall(
                        id=f"fc_{id_}", call_id=id_, name=name, arguments=json.dumps(args), type="function_call"
                    )
                    for id_, name, args in calls
                ]

            text = r.ResponseOutputText(text="tok " * script.deltas, type="output_text", annotations=[], logprobs=[])
            return [
                r.ResponseOutputMessage(
                    id=f"msg_{next(UID)}", type="message", role="assistant", status="completed", content=[text]
                )
            ]

        def response(output: list[Any]) -> Any:
            return r.Response(
                id=f"resp_{next(UID)}",
                created_at=0,
                model="fake",
                object="response",
                output=output,
                tool_choice="auto",
                tools=[],
                parallel_tool_calls=True,
            )

        class Fake(Model):
            def __init__(self, script: Script) -> None:
                self._script = script

            async def get_response(self, *_: Any, **__: Any) -> Any:
                await self._script.wait()
                usage = agents.Usage(requests=1)
                return agents.ModelResponse(output=items(self._script), usage=usage, response_id=None)

            async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
                await self._script.wait()
                output, number = items(self._script), itertools.count()
                yield r.ResponseCreatedEvent(
                    type="response.created", response=response([]), sequence_number=next(number)
                )
                for at, item in enumerate(output):
                    place: dict[str, Any] = {"output_index": at}
                    yield r.ResponseOutputItemAddedEvent(
                        type="response.output_item.added", item=item, sequence_number=next(number), **place
                    )
                    for _number in range(self._script.deltas if item.type == "message" else 0):
                        yield r.ResponseTextDeltaEvent(
                            type="response.output_text.delta",
                            content_index=0,
                            delta="tok ",
                            item_id=item.id,
                            logprobs=[],
                            sequence_number=next(number),
                            **place,
                        )

                    yield r.ResponseOutputItemDoneEvent(
                        type="response.output_item.done", item=item, sequence_number=next(number), **place
                    )

                yield r.ResponseCompletedEvent(
                    type="response.completed", response=response(output), sequence_number=next(number)
                )

        self._agents, self._delta, self._fake = agents, r.ResponseTextDeltaEvent, Fake

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._agents.function_tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return self._fake(script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        session = None if store is None else self._agents.SQLiteSession("s", str(Path(store, "s.db")))
        agent = self._agents.Agent(name="a", model=model, tools=list(tools))
        return Conversation(agent, list(history), session)

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        turn: list[Callable[[int], dict[str, Any]]] = [
            lambda _: {"role": "user", "content": BODY},
            lambda i: {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": f"h{i}",
                "name": "t0",
                "arguments": '{"x": 1}',
            },
            lambda i: {"type": "function_call_output", "call_id": f"h{i - 1}", "output": BODY},
            lambda i: {
                "type": "message",
                "id": f"m{i}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": BODY, "annotations": []}],
            },
        ]
        return [turn[number % 4](number) for number in range(count)]

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        run = self._agents.Runner.run
        if agent.session is not None:
            result = await run(agent.agent, prompt, session=agent.session, max_turns=_MANY)
        else:
            asked = [*agent.items, {"role": "user", "content": prompt}]
            result = await run(agent.agent, asked, max_turns=_MANY)
            agent.items = result.to_input_list()

        return str(result.final_output)

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        result = self._agents.Runner.run_streamed(agent.agent, prompt, max_turns=_MANY)
        async for event in result.stream_events():
            pieces += event.type == "raw_response_event" and isinstance(event.data, self._delta)

        return pieces

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        return path
