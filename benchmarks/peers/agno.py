"""agno with telemetry off. Its history comes from a session, which its database holds."""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from harness.driver import Driver
from harness.script import BODY, Script


class Agno(Driver):
    """Drives `agno.agent.Agent`."""

    name: ClassVar = "agno"
    distribution: ClassVar = "agno"
    import_statement: ClassVar = (
        "from agno.agent import Agent\nfrom agno.models.base import Model\n"
        "from agno.models.response import ModelResponse\nfrom agno.tools import tool"
    )

    def load(self) -> None:  # noqa: C901 - one fake model, many small methods
        """As the base says."""
        from agno.agent import Agent
        from agno.models.base import Model
        from agno.models.message import Message
        from agno.models.response import ModelResponse
        from agno.run.agent import RunContentEvent
        from agno.tools import tool

        logging.getLogger("agno").setLevel(logging.ERROR)

        @dataclass
        class Fake(Model):
            script: Any = None

            def invoke(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            def invoke_stream(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            def _parse_provider_response(self, response: Any, **_: Any) -> Any:
                return response

            def _parse_provider_response_delta(self, response: Any) -> Any:
                return response

            def _asked(self) -> Any:
                calls = self.script.next()
                if calls is None:
                    return None

                made = [
                    {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
                    for id_, name, args in calls
                ]
                return ModelResponse(role="assistant", tool_calls=made)

            async def ainvoke(self, *_: Any, **__: Any) -> Any:
                await self.script.wait()
                return self._asked() or ModelResponse(role="assistant", content="tok " * self.script.deltas)

            async def ainvoke_stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
                await self.script.wait()
                asked = self._asked()
                if asked is not None:
                    yield asked
                    return

                for _number in range(self.script.deltas):
                    yield ModelResponse(role="assistant", content="tok ")

        self._agent, self._message, self._tool = Agent, Message, tool
        self._content, self._fake = RunContentEvent, Fake

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return self._fake(id="fake", script=script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        options: dict[str, Any] = {}
        if store is not None:
            options = {"db": store, "add_history_to_context": True, "num_history_runs": 10**6, "session_id": "s"}

        agent = self._agent(model=model, tools=list(tools), telemetry=False, **options)
        agent.prior = list(history)
        return agent

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        message = self._message
        function = {"name": "t0", "arguments": '{"x": 1}'}
        turn: list[Callable[[int], Any]] = [
            lambda _: message(role="user", content=BODY),
            lambda i: message(
                role="assistant", tool_calls=[{"id": f"h{i}", "type": "function", "function": dict(function)}]
            ),
            lambda i: message(role="tool", tool_call_id=f"h{i - 1}", content=BODY),
            lambda _: message(role="assistant", content=BODY),
        ]
        return [turn[number % 4](number) for number in range(count)]

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        asked: Any = [*agent.prior, self._message(role="user", content=prompt)] if agent.prior else prompt
        return str((await agent.arun(asked)).content)

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        async for event in agent.arun(prompt, stream=True):
            pieces += isinstance(event, self._content)

        return pieces

    async def open_memory(self) -> Any:
        """Its in-memory database: without any, it remembers nothing."""
        from agno.db.in_memory import InMemoryDb

        return InMemoryDb()

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        from agno.db.sqlite import AsyncSqliteDb

        return AsyncSqliteDb(db_file=str(Path(path, "agno.db")))
