"""What a framework's driver provides. One small subclass per framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from harness.script import Script


class Driver:
    """Puts one framework behind the operations that the cases time.

    Attributes:
        name: As given to `--peers`.
        distribution: Whose version is reported; None when there is none.
        import_statement: The least that must be imported to construct and run an agent.
        streams_always: Whether a run without a consumer takes the model's answer piece by piece too.
        sync_only: Whether it has no async API: `run_sync` is called in threads then, and tools are plain functions.
        resume_continues: Whether a second agent on a store is where the conversation goes on.
        skip: Cases that are left out, with the reason.
    """

    name: ClassVar[str]
    distribution: ClassVar[str | None] = None
    import_statement: ClassVar[str] = "pass"
    streams_always: ClassVar[bool] = False
    sync_only: ClassVar[bool] = False
    resume_continues: ClassVar[bool] = True
    skip: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def load(self) -> None:
        """Imports the framework and defines its fake model."""

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """Wraps plain functions as tools."""
        raise NotImplementedError

    def model(self, script: Script) -> Any:
        """A fake model that says what the script says."""
        raise NotImplementedError

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """An agent with a conversation of its own."""
        raise NotImplementedError

    def history(self, count: int) -> list[Any]:
        """So many of the framework's own messages: user, call, result, text, and again."""
        raise NotImplementedError

    async def prepare(self, agent: Any) -> None:
        """Sets up an agent where that must be awaited. Not timed."""

    async def run(self, agent: Any, prompt: str) -> str:
        """Goes on with the agent's conversation; gives the final text."""
        raise NotImplementedError

    def run_sync(self, agent: Any, prompt: str) -> str:
        """`run` of a framework without an async API."""
        raise NotImplementedError

    async def stream(self, agent: Any, prompt: str) -> int:
        """As `run`, for a consumer that takes every piece; gives the number of pieces of text."""
        raise NotImplementedError

    async def open_memory(self) -> Any:
        """What stands in for a store when there is none; most keep the conversation anyway."""
        return None

    async def open_store(self, path: str) -> Any:
        """A durable store in a folder."""
        raise NotImplementedError

    async def close_store(self, store: Any) -> None:
        """Lets go of the store."""
