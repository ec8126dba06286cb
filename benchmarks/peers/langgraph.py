"""langgraph, through langchain's create_agent. AsyncSqliteSaver is the store."""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from harness.driver import Driver
from harness.script import BODY, UID, Script

_CONFIG: Final = {"recursion_limit": 10**7, "configurable": {"thread_id": "s"}}


@dataclass(slots=True)
class Conversation:
    """A graph and its messages, which the framework leaves to the caller or its store."""

    graph: Any
    messages: list[Any]
    store: Any


class LangGraph(Driver):
    """Drives a compiled graph."""

    name: ClassVar = "langgraph"
    distribution: ClassVar = "langgraph"
    import_statement: ClassVar = (
        "from langchain.agents import create_agent\nfrom langchain_core.language_models import BaseChatModel\n"
        "from langchain_core.tools import tool"
    )

    def load(self) -> None:
        """As the base says."""
        os.environ.setdefault("LANGSMITH_TRACING", "false")
        from langchain.agents import create_agent
        from langchain_core import messages as m
        from langchain_core.language_models import BaseChatModel
        from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
        from langchain_core.tools import tool

        class Fake(BaseChatModel):
            script: Any

            @property
            def _llm_type(self) -> str:
                return "fake"

            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

            def _generate(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            async def _agenerate(self, *_: Any, **__: Any) -> Any:
                await self.script.wait()
                calls = self.script.next()
                if calls is None:
                    message = m.AIMessage("tok " * self.script.deltas, id=f"m{next(UID)}")
                else:
                    made = [{"name": name, "args": args, "id": id_, "type": "tool_call"} for id_, name, args in calls]
                    message = m.AIMessage("", id=f"m{next(UID)}", tool_calls=made)

                return ChatResult(generations=[ChatGeneration(message=message)])

        class FakeStreaming(Fake):
            async def _astream(
                self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any
            ) -> AsyncIterator[Any]:
                del messages, stop
                await self.script.wait()
                self.script.next()
                for _number in range(self.script.deltas):
                    chunk = ChatGenerationChunk(message=m.AIMessageChunk("tok "))
                    if run_manager:
                        await run_manager.on_llm_new_token("tok ", chunk=chunk)

                    yield chunk

        self._create, self._tool, self._messages = create_agent, tool, m
        self._fake, self._fake_streaming = Fake, FakeStreaming

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return (self._fake if script.cycles else self._fake_streaming)(script=script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        return Conversation(self._create(model, list(tools), checkpointer=store), list(history), store)

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        m = self._messages
        call = {"name": "t0", "args": {"x": 1}, "type": "tool_call"}
        turn: list[Callable[[int], Any]] = [
            lambda i: m.HumanMessage(BODY, id=f"h{i}"),
            lambda i: m.AIMessage("", id=f"h{i}", tool_calls=[{**call, "id": f"h{i}"}]),
            lambda i: m.ToolMessage(BODY, tool_call_id=f"h{i - 1}", id=f"h{i}"),
            lambda i: m.AIMessage(BODY, id=f"h{i}"),
        ]
        return [turn[number % 4](number) for number in range(count)]

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        asked = [*agent.messages, self._messages.HumanMessage(prompt)]
        result = await agent.graph.ainvoke({"messages": asked}, _CONFIG)
        if agent.store is None:
            agent.messages = result["messages"]

        return str(result["messages"][-1].content)

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        asked = {"messages": [self._messages.HumanMessage(prompt)]}
        async for message, _ in agent.graph.astream(asked, _CONFIG, stream_mode="messages"):
            pieces += isinstance(message, self._messages.AIMessageChunk) and bool(message.content)

        return pieces

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        import aiosqlite
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        store = AsyncSqliteSaver(await aiosqlite.connect(str(Path(path, "checkpoints.db"))))
        await store.setup()
        return store

    async def close_store(self, store: Any) -> None:
        """As the base says."""
        await store.conn.close()
