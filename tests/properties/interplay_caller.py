"""What the test of any interplay does with an agent, and what must hold after each deed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from interplay_agent import KEY, Slow, build
from interplay_world import Form, Outcomes, World, answer_to

from ropewalk import Agent, ResumeError
from ropewalk.kits.json_values import packed
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import assert_valid_history

ENOUGH = 60  # calls of an agent until it must have come to rest
PATIENCE = 30  # seconds, for what would never end


def face(agent: Agent) -> Any:
    """What of an agent must survive its process."""
    return packed({**agent.log_data(), "cells": {k: v.get() for k, v in (agent._cells or {}).items() if v.get()}})


def next_prompt(agent: Agent, most: int | None = None) -> Any:
    """With what a paused run goes on; None where nothing is asked."""
    pause = agent.suspension
    if pause is None or pause.kind == "crash":
        return None

    if pause.kind == "checkpoint":
        return {"checkpointResume": {"checkpoint": pause.checkpoint}}

    return [
        {"interruptResponse": {"interruptId": each.id, "response": answer_to(each.name)}}
        for each in pause.interrupts[:most]
    ]


async def left_early(events: Any, most: int) -> Any:
    """Reads so many events, and leaves."""
    async with contextlib.aclosing(events):
        async for event in events:
            most -= 1
            if most < 0 or "result" in event:
                return event.get("result")

    return None


class Caller:
    """Does things with an agent, and looks at what came of each."""

    def __init__(self, world: World, store: Slow) -> None:
        self.world, self.store, self.agent = world, store, build(world, store)
        self.safe = True  # whether the log has all there is: not after a failed write

    def options(self) -> dict[str, Any]:
        turns = self.world.features["turns"]
        return {
            **({"limits": {"turns": turns}} if turns else {}),
            **({"structured_output_model": Form} if self.world.features["structured"] else {}),
        }

    async def act(self, deed: str, number: int) -> None:
        """Does one thing, by its name in `DEEDS`."""
        if deed in ("prompt", "cancel", "stop", "leave"):
            await self.call(self.prompt(), deed, number)
        else:
            await getattr(self, deed.replace(" ", "_"))(number)

        self.look()

    def prompt(self) -> Any:
        return next_prompt(self.agent) if self.agent.suspension else f"p{next(self.world.prompts)}"

    async def call(self, prompt: Any, way: str, steps: int) -> Any:
        """Calls the agent in some way; what it may raise is returned."""
        agent, options = self.agent, self.options()
        try:
            async with asyncio.timeout(PATIENCE):
                if way == "leave":
                    return await left_early(agent.stream_async(prompt, **options), steps)

                task = asyncio.create_task(agent.invoke_async(prompt, **options))
                for _ in range(steps if way != "prompt" else 0):
                    await asyncio.sleep(0)

                if way == "cancel" and not task.done():
                    agent.cancel()

                if way == "stop":
                    task.cancel()
                    await asyncio.wait([task])
                    return None if task.cancelled() else task.exception() or task.result()

                return await task
        except Outcomes.ALL as error:
            return error

    async def to_rest(self) -> None:
        """Goes on until nothing is open; the right answers are never refused."""
        for _ in range(ENOUGH):
            if self.agent.suspension is None:
                return

            outcome = await self.call(next_prompt(self.agent), "prompt", 0)
            assert not isinstance(outcome, ResumeError), outcome
            self.look()

        raise AssertionError(f"it does not come to rest: {self.agent.suspension}")

    async def some_answers(self, _: int) -> None:
        if self.agent.suspension:
            await self.call(next_prompt(self.agent, 1), "prompt", 0)

    async def direct_call(self, number: int) -> None:
        with contextlib.suppress(RuntimeError, *Outcomes.FAILED):  # paused; unlucky
            self.agent.tool.plain(record_direct_tool_call=bool(number % 2))

    async def two_at_once(self, _: int) -> None:
        both = self.call(self.prompt(), "prompt", 0), self.call("p, too", "prompt", 0)
        await asyncio.gather(*both, return_exceptions=True)  # in a run beside another one nobody can be asked

    async def failing_write(self, number: int) -> None:
        self.store.fails, self.safe = "before" if number % 2 else "after", False
        await self.call(self.prompt(), "prompt", 0)
        self.store.fails = None

    async def state(self, number: int) -> None:
        self.agent.state.set(f"k{number}", number)

    async def wrong_answers(self, number: int) -> None:
        """A wrong resume is refused, and nothing has happened."""
        stray = {"interruptResponse": {"interruptId": "nobody's", "response": 1}}
        pause = self.agent.suspension
        wrong: Any = {"checkpointResume": {"checkpoint": {"position": "after_lunch"}}}
        if pause is None or pause.kind == "interrupt":
            wrong = [None, [*next_prompt(self.agent), stray]][number % 2] if pause else [stray]

        before, lines, begun = face(self.agent), self.store.lines(), len(self.world.begun)
        outcome = await self.call(wrong, "prompt", 0)

        assert isinstance(outcome, Outcomes.REFUSED), outcome
        assert (face(self.agent), self.store.lines(), len(self.world.begun)) == (before, lines, begun)

    async def reopen(self, _: int = 0) -> None:
        """Another process finds what this one has left."""
        before, safe = face(self.agent), self.safe and bool(self.store.logs())  # before its first run there is no log
        with contextlib.suppress(*() if safe else (ExceptionGroup,)):
            await self.agent.aclose()

        self.agent, self.safe = build(self.world, self.store), True
        assert not safe or face(self.agent) == before

    async def crash(self, steps: int) -> None:
        """The process ends in the middle of a run; another one has what is in the store by then."""
        run = asyncio.create_task(self.call(self.prompt(), "prompt", 0))
        for _ in range(steps):
            await asyncio.sleep(0)

        store, done = self.copy(len(self.store.lines(KEY)) if self.store.logs() else 0), list(self.world.done)
        run.cancel()  # what it does from here on never happened, as far as the store knows
        await asyncio.wait([run])
        self.store, self.safe = store, True
        known = ended(store)
        self.world.done = [each for each in done if each in known]
        self.agent = build(self.world, store)

    async def cut(self, number: int) -> None:
        """Another process goes on from an earlier place of the log: what had ended by then is not done again."""
        lines = self.store.lines(KEY) if self.store.logs() else []
        end = len(lines) - number % max(len(lines), 1)
        if not lines or any('"redacted"' in line for line in lines[max(end - 3, 0) :]):
            return  # a redaction erases what is before it: that place was never one to go on from

        other = Caller(self.world.beside(), self.copy(end))
        known, begun = ended(other.store), started(other.store)
        await other.to_rest()
        assert not known.intersection(other.world.done), "what had ended was done again"
        again = {(use_id, attempt) for use_id, attempt, name in other.world.begun if name != "pure"}
        assert not again.intersection(begun - known), "what may have been done was done again without a word"

    def copy(self, end: int) -> Slow:
        store = Slow()
        for line in self.store.lines(KEY)[:end] if end else ():
            store.put_line(KEY, line)

        return store

    async def snapshot(self, _: int) -> None:
        """A snapshot goes on in an agent that knows nothing else."""
        if self.agent.messages.before_edit is None:
            snapshot = self.agent.take_snapshot(preset="session").to_dict()
            other = Caller(self.world.beside(), Slow())
            other.agent.load_snapshot(Snapshot.from_dict(snapshot))
            await other.to_rest()
            assert not set(self.world.done).intersection(other.world.done), "what had ended was done again"

    # -- what must hold ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """What holds whenever an agent is at rest."""
        agent, world = self.agent, self.world
        assert not world.problems, world.problems
        assert not agent._runs, "a run has kept the agent"
        assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
        assert len(set(world.done)) == len(world.done), f"a tool has run to its end twice: {world.done}"
        assert_valid_history(list(agent.history.view()), open_tail=agent.suspension is not None)
        found = self.store.read(KEY) if self.safe else None
        pause = agent.suspension
        if found is None or (pause is not None and pause.kind == "crash"):
            return

        behind = agent.log is None or not agent.log.agrees or agent.log.changes or agent.log.unwritten is not None
        if not behind:
            log = fold(LogState(), found.records)
            told = log.pause.to_dict() if log.pause is not None else None
            cells = {name: cell for name, cell in log.cells.items() if cell}
            state = {"messages": log.messages, "ids": log.ids, "state": log.state, "cells": cells, "pause": told}
            assert packed(state) == face(agent)


def ended(store: Slow) -> set[tuple[str, int]]:
    """The attempts at tools that a log has the end of."""
    return {(each.data["id"], each.data["attempt"]) for each in records_of(store) if each.kind == "tool_ended"}


def started(store: Slow) -> set[tuple[str, int]]:
    """The attempts at tools that a log has the start of; not those that ask and start anew with the answer."""
    found: set[tuple[str, int]] = set()
    for each in records_of(store):
        if each.kind == "tool_started":
            found.add((each.data["tool_use"]["toolUseId"], each.data["attempt"]))
        elif each.kind == "run_suspended":
            found = {(use_id, attempt) for use_id, attempt in found if use_id in each.data["unknown"]}

    return found


def records_of(store: Slow) -> list[Any]:
    found = store.read(KEY)
    return found.records if found is not None else []
