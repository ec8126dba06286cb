"""The floor: an agent loop written by hand, without a framework. Everything else is told as a ratio to it."""

from __future__ import annotations

import asyncio
import inspect
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from harness.driver import Driver
from harness.script import BODY, Script


class FakeModel:
    """Says what the script says, in the least that can carry it."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def stream(self, _messages: list[Any], _specs: list[Any]) -> AsyncIterator[tuple[str, Any]]:
        """Yields ("call", use) or ("delta", text)."""
        await self._script.wait()
        calls = self._script.next()
        if calls is not None:
            for call_id, name, arguments in calls:
                yield "call", {"id": call_id, "name": name, "args": json.dumps(arguments)}
        else:
            for _ in range(self._script.deltas):
                yield "delta", "tok "


class Tool:
    """A function with a description."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.name = function, function.__name__
        self.is_async = inspect.iscoroutinefunction(function)
        parameters = inspect.signature(function).parameters
        self.spec = {
            "name": self.name,
            "description": function.__doc__,
            "parameters": {name: str(parameter.annotation) for name, parameter in parameters.items()},
        }


class Store:
    """One row a message, one commit a turn."""

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(f"{path}/floor.db")
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=NORMAL")
        self.database.execute("CREATE TABLE IF NOT EXISTS m (id INTEGER PRIMARY KEY, body TEXT)")

    def append(self, messages: list[Any]) -> None:
        """Writes the messages of a turn."""
        rows = [(json.dumps(message),) for message in messages]
        self.database.executemany("INSERT INTO m (body) VALUES (?)", rows)
        self.database.commit()

    def load(self) -> list[Any]:
        """All messages."""
        return [json.loads(body) for (body,) in self.database.execute("SELECT body FROM m ORDER BY id")]


class Agent:
    """The loop."""

    def __init__(self, model: FakeModel, tools: Sequence[Tool], messages: list[Any], store: Store | None) -> None:
        self.model, self.messages, self.store = model, messages, store
        self.tools = {tool.name: tool for tool in tools}
        self.specs = [tool.spec for tool in tools]

    async def call(self, use: dict[str, Any]) -> dict[str, Any]:
        """Runs one tool."""
        tool, arguments = self.tools[use["name"]], json.loads(use["args"])
        running = tool.function(**arguments) if tool.is_async else asyncio.to_thread(tool.function, **arguments)
        return {"id": use["id"], "result": await running}

    async def stream(self, prompt: str) -> AsyncIterator[tuple[str, Any]]:
        """Yields ("delta", text), ("results", results) and, last, ("done", text)."""
        messages = self.messages
        start = len(messages)
        messages.append({"role": "user", "content": prompt})
        while True:
            text: list[str] = []
            uses: list[dict[str, Any]] = []
            async for kind, value in self.model.stream(messages, self.specs):
                if kind == "delta":
                    text.append(value)
                    yield kind, value
                else:
                    uses.append(value)

            messages.append({"role": "assistant", "content": "".join(text), "calls": uses})
            if not uses:
                if self.store is not None:
                    self.store.append(messages[start:])

                yield "done", messages[-1]["content"]
                return

            results = [await self.call(uses[0])] if len(uses) == 1 else await asyncio.gather(*map(self.call, uses))
            messages.append({"role": "tool", "results": results})
            yield "results", results

    async def run(self, prompt: str) -> str:
        """As `stream`, for the text alone."""
        last: tuple[str, Any] = ("done", "")
        async for item in self.stream(prompt):
            last = item

        return str(last[1])


class Floor(Driver):
    """Drives the loop above."""

    name: ClassVar = "floor"
    import_statement: ClassVar = "import asyncio, json, inspect, sqlite3"
    streams_always: ClassVar = True

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [Tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return FakeModel(script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        return Agent(model, tools, list(history) or (store.load() if store is not None else []), store)

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        turn: list[dict[str, Any]] = [
            {"role": "user", "content": BODY},
            {"role": "assistant", "content": "", "calls": [{"id": "c", "name": "t0", "args": '{"x": 1}'}]},
            {"role": "tool", "results": [{"id": "c", "result": BODY}]},
            {"role": "assistant", "content": BODY, "calls": []},
        ]
        return [dict(turn[number % 4]) for number in range(count)]

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        return str(await agent.run(prompt))

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        async for kind, _ in agent.stream(prompt):
            pieces += kind == "delta"

        return pieces

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        return Store(path)

    async def close_store(self, store: Any) -> None:
        """As the base says."""
        store.database.close()
