"""Whatever an agent is made of and however its runs pause, fail or are cut off: nothing is lost or done twice.

Each example draws an agent, what its model says, what its hooks do, and what its caller does with it. Longer hunts:
`ROPEWALK_EXAMPLES=20000`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from ropewalk import (
    Agent,
    ConcurrencyException,
    ContextWindowOverflowException,
    InvalidPromptError,
    MaxTokensReachedException,
    MissingPluginError,
    ModelError,
    ModelThrottledException,
    ResumeError,
    Retry,
    SequentialToolExecutor,
    SlidingWindowConversationManager,
    StructuredOutputException,
    SummarizingConversationManager,
    ToolsOutcome,
    current_run,
    error_result,
    hookimpl,
)
from ropewalk.kits.json_values import packed
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions import LogKey, SessionException, SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import MemoryLogStore, ScriptedModel, assert_valid_history, text, turn, use

EXAMPLES = int(os.environ.get("ROPEWALK_EXAMPLES", "120"))
KEY = LogKey("s", "default")
ENOUGH = 60  # calls of an agent until it must have come to rest
PATIENCE = 30  # seconds, for what would never end


class Form(BaseModel):
    """What structured output fills."""

    name: str


class UnluckyError(RuntimeError):
    """What hooks raise here."""


class Outcomes:
    """What a call may raise in this test."""

    REFUSED = (ResumeError, InvalidPromptError, ConcurrencyException, MissingPluginError)
    FAILED = (UnluckyError, ModelError, MaxTokensReachedException, StructuredOutputException, SessionException)
    ALL = (*REFUSED, *FAILED)


# -- what is drawn -------------------------------------------------------------------------------------------------

MANAGERS = {
    "none": dict,
    "small window": lambda: {"conversation_manager": SlidingWindowConversationManager(window_size=3, per_turn=True)},
    "summaries": lambda: {
        "conversation_manager": SummarizingConversationManager(
            summary_ratio=0.8, preserve_recent_messages=2, proactive_compression={"compression_threshold": 0.05}
        )
    },
    "auto": lambda: {"context_manager": "auto"},
    "agentic": lambda: {"context_manager": "agentic"},
}
POINTS = ["invocation", "model", "tools", "call"]
TOOLS = ["plain", "pure", "slow", "asks", "asks_late", "fails", "remembers", "big", "helper", "keeper"]
TURNS = ["text", "tools", "tools", "tools", "throttle", "overflow", "error", "cut", "max_tokens", "redact", "form"]
LUCK = ["pass"] * 8 + ["raise before", "raise after", "again", "deny", "end the turn", "cancel", "ask", "ask after"]
DEEDS = [
    "prompt", "prompt", "cancel", "stop", "leave", "some answers", "wrong answers", "reopen", "crash", "cut", "cut",
    "direct call", "two at once", "failing write", "snapshot", "state",
]  # fmt: skip

FEATURES = st.fixed_dictionaries(
    {
        "manager": st.sampled_from(sorted(MANAGERS)),
        "in a row": st.booleans(),
        "checkpointing": st.sampled_from([False, False, True]),
        "structured": st.sampled_from([False, False, True]),
        "reentrant": st.sampled_from([False, False, True]),
        "keep_last": st.sampled_from([None, None, 1]),
        "turns": st.sampled_from([None, None, 2]),
        "asks before": st.lists(st.sampled_from(POINTS), max_size=2, unique=True),
        "asks after": st.lists(st.sampled_from(POINTS), max_size=2, unique=True),
    }
)
SAID = st.lists(
    st.tuples(st.sampled_from(TURNS), st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)), max_size=10
)
STEPS = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 40)), min_size=1, max_size=6)


class World:
    """What outlives an agent: what its model will say, what its hooks will do, and what its tools have done."""

    def __init__(self, features: dict[str, Any], said: list[Any], helper: list[Any], luck: list[str]) -> None:
        self.features, self.luck = features, list(luck)
        self.said = {"outer": list(said), "helper": list(helper)}
        self.done: list[tuple[str, int]] = []
        self.begun: list[tuple[str, int, str]] = []
        self.problems: list[str] = []
        self.numbers = itertools.count()
        self.prompts = itertools.count()

    def beside(self) -> World:
        """The same world for another agent; nothing is done in it yet."""
        other = World(self.features, self.said["outer"], self.said["helper"], self.luck)
        other.numbers = itertools.count(10_000)
        return other

    def turn(self, who: str, request: Any) -> Any:
        """What a model says to a request."""
        try:
            assert_valid_history(list(request.messages))
        except AssertionError as error:
            self.problems.append(f"the {who} model got: {error}")

        form = any(spec["name"] == "Form" for spec in request.tool_specs)
        if request.purpose != "turn" or not self.said[who]:
            return self.use("Form") if request.tool_choice is not None else "the end"

        kind, tools = self.said[who].pop(0)
        uses = [self.use(name) for name in tools]
        return {
            "tools": uses,
            "throttle": ModelThrottledException("slow down"),
            "overflow": ContextWindowOverflowException("too long"),
            "error": ModelError("down"),
            "cut": turn(uses[0], cut=True),
            "max_tokens": turn(text("half"), uses[0], stop="max_tokens"),
            "redact": turn(raw=[
                {"messageStart": {"role": "assistant"}},
                {"redactContent": {"redactUserContentMessage": "[gone]"}},
                {"contentBlockDelta": {"delta": {"text": "no"}, "contentBlockIndex": 0}},
                {"messageStop": {"stopReason": "guardrail_intervened"}},
            ]),
            "form": self.use("Form") if form else "no form",
        }.get(kind, "an answer")  # fmt: skip

    def use(self, name: str) -> Any:
        given = {"Form": {"name": "x"}, "helper": {"input": "help"}, "keeper": {"input": "help"}}.get(name, {})
        return use(name, given, id=f"u{next(self.numbers)}")


def answer_to(name: str) -> Any:
    """The answer to a question; it tells whose it is, and some are falsy."""
    return [{"to": name}, None, False, f"to {name}"][len(name) % 4]


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


def heard(world: World, name: str, answer: Any) -> None:
    if answer != answer_to(name):
        world.problems.append(f"who asked {name!r} heard {answer!r}")


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


# -- what is done with it ------------------------------------------------------------------------------------------


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
        before, safe = face(self.agent), self.safe and self.agent.log is not None
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


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(
    features=FEATURES,
    said=SAID,
    helper=SAID,
    luck=st.lists(st.sampled_from(LUCK), max_size=20) | st.just([]),
    steps=STEPS,
)
def test_nothing_is_lost_or_done_twice_whatever_happens_to_a_run(features, said, helper, luck, steps):
    async def live() -> None:
        caller = Caller(World(features, said, helper, luck), Slow())
        for deed, number in steps:
            await caller.act(deed, number)

        await caller.to_rest()
        await caller.reopen()
        caller.look()
        await caller.agent.aclose()

    asyncio.run(live())
