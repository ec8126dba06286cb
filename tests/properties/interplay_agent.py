"""The agent that the test of any interplay draws: its tools, its hooks and its store."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from interplay_world import MANAGERS, TOOLS, UnluckyError, World, heard

from ropewalk import (
    Agent,
    ModelThrottledException,
    Retry,
    SequentialToolExecutor,
    ToolsOutcome,
    current_run,
    error_result,
    hookimpl,
)
from ropewalk.kits.sessions import LogKey, SessionException, SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk_testing import MemoryLogStore, ScriptedModel

KEY = LogKey("s", "default")


class Does:
    """A tool that keeps book of what it does."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.tool_name = world, name
        self.effect = "pure" if name == "pure" else "irreversible"

    @property
    def tool_spec(self) -> Any:
        return {"name": self.tool_name, "description": "d", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call: Any) -> Any:
        name, use_id = self.tool_name, call.tool_use["toolUseId"]
        if name == "asks":
            self.ask(call, f"may {use_id}")

        self.world.begun.append((use_id, call.attempt, name))
        for _ in range(6 if name == "slow" else 1):
            await asyncio.sleep(0)

        if name == "asks_late":
            self.ask(call, f"well {use_id}?")

        if name == "remembers":
            call.agent.state.set(use_id, name)
            call.agent.plugin_state("hooks").set(use_id, name)

        self.world.done.append((use_id, call.attempt))
        if name == "fails":
            raise RuntimeError(name)

        said = "long " * 3000 if name == "big" else f"{name} {use_id}"
        return {"toolUseId": use_id, "status": "success", "content": [{"text": said}]}

    def ask(self, call: Any, name: str) -> None:
        heard(self.world, name, call.interrupt(name, {"asks": name}))


class Hooks:
    """Asks where the features say so, and does what luck brings."""

    name = "hooks"

    def __init__(self, world: World) -> None:
        self.world, self.asked = world, itertools.count()

    async def around(self, point: str, subject: Any, call_next: Any, agent: Any, place: str = "") -> tuple[str, Any]:
        world, run = self.world, current_run()
        quiet = run.direct or run.history is not agent.history
        luck = world.luck.pop() if world.luck else "pass"
        if luck == "raise before":
            raise UnluckyError(point)

        if luck == "cancel":
            agent.cancel()

        if not quiet and (point in world.features["asks before"] or luck == "ask"):
            self.ask(f"before {point} {place}{run.cycle}", run)

        outcome = await call_next(subject)
        await asyncio.sleep(0)
        if luck == "again" and point == "call":
            outcome = await call_next(subject)

        if luck == "raise after":
            raise UnluckyError(point)

        if not quiet and not run.interrupts and (point in world.features["asks after"] or luck == "ask after"):
            self.ask(f"after {point} {place}{run.cycle}", run)

        return luck, outcome

    def ask(self, name: str, run: Any) -> None:
        heard(self.world, name, run.interrupt(name, of=f"{run.id} {name}"))

    @hookimpl
    async def around_invocation(self, invocation: Any, call_next: Any, agent: Any) -> Any:
        return (await self.around("invocation", invocation, call_next, agent))[1]

    @hookimpl
    async def around_model_call(self, request: Any, call_next: Any, agent: Any) -> Any:
        if request.purpose != "turn":
            return await call_next(request)

        luck, outcome = await self.around("model", request, call_next, agent)
        return Retry("again", feedback=({"text": "better"},)) if luck == "again" else outcome

    @hookimpl
    async def around_tools(self, batch: Any, call_next: Any, agent: Any) -> Any:
        luck, outcome = await self.around("tools", batch, call_next, agent)
        return ToolsOutcome(outcome.results, "enough") if luck == "end the turn" else outcome

    @hookimpl
    async def around_tool_call(self, call: Any, call_next: Any, agent: Any) -> Any:
        use_id = call.tool_use["toolUseId"]
        luck, result = await self.around("call", call, call_next, agent, f"{use_id} ")
        return error_result(use_id, "no") if luck == "deny" else result

    @hookimpl
    async def manage_context(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def decide_retry(self, failure: Any) -> float | None:
        return 0.0 if isinstance(failure.error, ModelThrottledException) and failure.attempt < 3 else None


class Slow(MemoryLogStore):
    """A store that others get a turn in, and that fails once when told to: before it has written, or after."""

    fails: str | None = None

    async def append(self, key: Any, records: Any, position: int) -> int:
        await asyncio.sleep(0)
        fails, self.fails = self.fails, None
        if fails == "before":
            raise SessionException("the disk is full")

        end = await super().append(key, records, position)
        await asyncio.sleep(0)
        if fails == "after":
            raise SessionException("the answer is lost")

        return end


def build(world: World, store: Slow | None) -> Agent:
    """The agent, as each process of an application makes it."""
    chosen = world.features
    given = {**MANAGERS[chosen["manager"]](), "checkpointing": chosen["checkpointing"]}
    if chosen["in a row"]:
        given["tool_executor"] = SequentialToolExecutor()

    if chosen["reentrant"]:
        given["concurrent_invocation_mode"] = "unsafe_reentrant"

    if store is not None:
        kept = None if chosen["keep_last"] is None else Retention(keep_last=chosen["keep_last"])
        given["session_manager"] = SessionManager(KEY.session_id, store, kept)

    tools: list[Any] = [Does(world, name) for name in TOOLS[:8]]
    for name in TOOLS[8:]:
        inner = [Does(world, each) for each in TOOLS[:6]]
        model = ScriptedModel(lambda request: world.turn("helper", request), record=False)
        helper = Agent(model, name=name, tools=inner, callback_handler=None, retry_strategy=None)
        tools.append(helper.as_tool(preserve_context=name == "keeper"))

    model = ScriptedModel(lambda request: world.turn("outer", request), record=False, context_window=3000)
    return Agent(model, tools=tools, plugins=[Hooks(world)], callback_handler=None, retry_strategy=None, **given)
