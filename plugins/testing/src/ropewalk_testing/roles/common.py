"""What the tests of all roles need: agents without any other plugin, probes, and waiting with an end."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pytest

from ropewalk import Agent, hookimpl
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk.kits.hooks import discovery
from ropewalk.tools import ToolBatch, ToolCall
from ropewalk.types import ToolResult
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.scripted import ScriptedModel

T = TypeVar("T")

SECONDS: Final = 30.0
"""After so long what hangs fails its test."""

STEPS: Final = 2_000
"""How many turns of the event loop a test waits for something."""


class Role:
    """What the tests of every role stand on."""

    @pytest.fixture(autouse=True)
    def alone(self, no_plugins_env: pytest.MonkeyPatch) -> Iterator[None]:  # noqa: ARG002 - for its effect
        """No plugin takes part that the test does not name."""
        discovery.refresh()
        yield
        discovery.refresh()


class Probe:
    """A tool that notes its calls; `act(call)`, async, says what it does before it answers."""

    def __init__(self, name: str, act: Callable[[ToolCall], Awaitable[Any]] | None = None) -> None:
        self.tool_name = name
        self.tool_spec: Any = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}
        self.act = act
        self.started: list[str] = []
        self.running = 0
        self.most = 0

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Answers with the id of the call."""
        use_id = call.tool_use["toolUseId"]
        self.started.append(use_id)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.act is not None:
                await self.act(call)
        finally:
            self.running -= 1

        return {"toolUseId": use_id, "status": "success", "content": [{"text": f"answer to {use_id}"}]}


class AtOnce:
    """The simplest executor that runs calls at once."""

    name = "at-once"

    @hookimpl
    async def execute_tools(self, batch: ToolBatch, run_tool: Callable[[ToolCall], Awaitable[ToolResult]]) -> Any:
        """Runs all."""
        return await asyncio.gather(*[run_tool(call) for call in batch.calls])


class NoWaits(Seam):
    """A clock that does not make tests wait; `seconds` has what would have been waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Notes it, and lets others run."""
        self.seconds.append(seconds)
        await asyncio.sleep(0)


@contextmanager
def no_waits() -> Iterator[list[float]]:
    """What the kernel waits in the block, in seconds; it does not take any."""
    seam = NoWaits()
    with use_seam(seam):
        yield seam.seconds


def make_agent(turns: Any, *, plugins: Sequence[Any] = (), **parameters: Any) -> Any:
    """An agent with a scripted model and these plugins only."""
    model = turns if hasattr(turns, "stream") else ScriptedModel(turns)
    return Agent(model=model, plugins=list(plugins), callback_handler=None, **parameters)


async def within(work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, which fails its test when it hangs."""
    async with asyncio.timeout(SECONDS):
        return await work


async def ended(task: asyncio.Future[T]) -> T:
    """What a task comes to, which is to end by itself; one that hangs is left behind."""
    done, _ = await asyncio.wait({task}, timeout=SECONDS)
    assert done, "it did not end"  # noqa: S101 - of a test
    return task.result()


async def until(true: Callable[[], Any], complaint: str) -> None:
    """Waits until something holds."""
    for _ in range(STEPS):
        if true():
            return

        await asyncio.sleep(0)

    for _ in range(STEPS // 10):  # perhaps a thread
        if true():
            return

        await asyncio.sleep(0.01)

    raise AssertionError(complaint)


async def run(agent: Agent, prompt: Any = "Go.") -> Any:
    """Calls the agent; models can be sent its history afterwards, unless it is paused, and then all but its end."""
    result = await within(agent.invoke_async(prompt))
    assert_valid_history(list(agent.history.view()), open_tail=agent.suspension is not None)
    return result


def results_of(agent: Agent) -> dict[str, tuple[str, Any]]:
    """The tool results of the history: status and content by the id of the use."""
    blocks = [block["toolResult"] for m in agent.messages for block in m["content"] if "toolResult" in block]
    return {block["toolUseId"]: (block["status"], copy.deepcopy(block["content"])) for block in blocks}


def texts_of(agent: Agent) -> str:
    """The whole history as one text."""
    return str(list(agent.messages))
