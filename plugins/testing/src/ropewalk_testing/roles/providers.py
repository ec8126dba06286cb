"""What every tool provider keeps."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import pytest

from ropewalk.kits.messages.rules import is_legal_tool_name
from ropewalk.kits.tool_registry import is_tool
from ropewalk_testing.roles.common import Role, make_agent, results_of, run
from ropewalk_testing.turns import use


class ToolProviderConformance(Role):
    """Tests that a tool provider passes. A subclass named `Test...` has a fixture `provider`.

    Attributes:
        call: The name of a tool that it brings, and an input with which that succeeds.
    """

    call: ClassVar[tuple[str, dict[str, Any]]]

    @pytest.fixture
    def provider(self) -> Any:
        """Makes the provider, not yet open; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a fixture `provider` that makes the one under test")

    def is_open(self, provider: Any) -> bool:  # noqa: ARG002 - for those who override it
        """Whether it holds what it has to close (a process, a connection)."""
        pytest.skip("whether it is open cannot be seen (no method is_open)")

    async def test_it_brings_tools(self, provider: Any) -> None:
        """Under legal names, each once."""
        tools = await self.joined(provider, "one")
        names = [tool.tool_name for tool in tools]

        assert tools
        assert all(map(is_tool, tools))
        assert all(map(is_legal_tool_name, names))
        assert len(set(names)) == len(names)
        await self.left(provider, "one")

    async def test_its_tools_work(self, provider: Any) -> None:
        """In an agent that has them."""
        assert await self.works(await self.joined(provider, "one"))
        await self.left(provider, "one")

    async def test_each_consumer_gets_the_same_tools(self, provider: Any) -> None:
        """Agents may share one."""
        first = await self.joined(provider, "one")
        second = await self.joined(provider, "two")

        assert [tool.tool_name for tool in first] == [tool.tool_name for tool in second]
        await self.left(provider, "one")
        await self.left(provider, "two")

    async def test_it_stays_open_for_those_who_are_left(self, provider: Any) -> None:
        """The tools of one consumer work when another one has gone, the first one too."""
        await self.joined(provider, "one")
        tools = await self.joined(provider, "two")
        await self.left(provider, "one")

        assert await self.works(tools)
        await self.left(provider, "two")

    async def test_it_closes_after_the_last(self, provider: Any) -> None:
        """And not before."""
        assert not self.is_open(provider)
        await self.joined(provider, "one")
        await self.joined(provider, "two")
        await self.left(provider, "one")
        assert self.is_open(provider)
        await self.left(provider, "two")

        assert not self.is_open(provider)

    async def test_it_closes_when_nothing_was_loaded(self, provider: Any) -> None:
        """A consumer leaves after a load that failed, too."""
        provider.add_consumer("one")
        await self.left(provider, "one")

        assert not self.is_open(provider)

    async def test_it_opens_again(self, provider: Any) -> None:
        """For a consumer that comes when all have gone."""
        await self.joined(provider, "one")
        await self.left(provider, "one")

        assert await self.works(await self.joined(provider, "two"))
        await self.left(provider, "two")

    # -- their parts -----------------------------------------------------------------------------------------------

    async def joined(self, provider: Any, consumer: str) -> list[Any]:
        """The tools for a new consumer."""
        provider.add_consumer(consumer)
        loaded = provider.load_tools()
        return list(await loaded if inspect.isawaitable(loaded) else loaded)

    async def left(self, provider: Any, consumer: str) -> None:
        """A consumer goes."""
        done = provider.remove_consumer(consumer)
        if inspect.isawaitable(done):
            await done

    async def works(self, tools: list[Any]) -> bool:
        """Whether the call of `call` succeeds."""
        name, given = self.call
        agent = make_agent([use(name, given, id="T1"), "done"], tools=tools)
        await run(agent)
        return results_of(agent)["T1"][0] == "success"
