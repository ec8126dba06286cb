"""What happens in one child: the agent is built, and driven until all prompts are answered, or the process killed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ropewalk import Record
from ropewalk.kits.json_values import packed
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions import LogKey, LogStore, SessionManager
from ropewalk_testing.crash.effects import EffectJournal
from ropewalk_testing.crash.killing import KillingStore, KillPoint

if TYPE_CHECKING:
    from ropewalk import Agent
    from ropewalk_testing.crash.scenario import Scenario

_MOST_CALLS: Final = 100


@dataclass(frozen=True)
class Job:
    """What a run of the crash kit is about.

    Attributes:
        store_factory: Opens the store that a folder stands for.
        scenario: The run.
        name: Begins the session ids, so that stores which are one database hold all runs.
    """

    store_factory: Callable[[Path], LogStore]
    scenario: Scenario
    name: str

    def key(self, folder: Path) -> LogKey:
        """The log of the run in a folder."""
        return LogKey(f"{self.name}-{folder.parent.name}-{folder.name}", "default")


def act(job: Job, folder: Path, point: KillPoint | None, phase: int) -> None:
    """Opens the store, goes on with what is there, and leaves its findings in files of the folder.

    Args:
        job: What it is about.
        folder: Holds the store, the journal of effects, and the findings.
        point: Where the process is killed; None to come to the end.
        phase: How many processes were killed before.
    """
    place = folder / "store"
    place.mkdir(exist_ok=True)
    store = KillingStore(job.store_factory(place), point)
    key = job.key(folder)
    manager = SessionManager(key.session_id, store, job.scenario.retention)
    agent = job.scenario.agent(manager, EffectJournal(folder / "effects", phase))
    before = store.begun_with or []  # the agent has read it: reading is most of what a slow store does here
    _save(folder / f"{phase}-before.json", [record.to_dict() for record in before])
    asyncio.run(drive(agent, job.scenario, before))

    after = store.read(key)
    logged = fold(LogState(), after.records if after is not None else [])
    _save(
        folder / f"{phase}-end.json",
        {
            "messages": packed(list(agent.messages)),
            "state": packed({str(name): state.get() for name, state in agent.states().items()}),
            "logged": {
                "messages": packed(logged.messages),
                "state": packed({"None": logged.state, **logged.cells}),
                "open": logged.open is not None,
            },
            "steps": [[list(step.kinds), step.replaces] for step in store.steps],
            "modules": list(sys.modules),
        },
    )


async def drive(agent: Agent, scenario: Scenario, before: Iterable[Record]) -> None:
    """Has every prompt answered that the log does not have yet, and goes on with the run it broke off in.

    Raises:
        RuntimeError: The run does not come to an end.
    """
    records, prompts = list(before), scenario.prompts
    started = max((n for n, each in enumerate(records) if each.kind == "run_started" and not each.path), default=0)
    known, now = said_in(records), said_in(records[started:])
    last = max((place for place, prompt in enumerate(prompts) if prompt in known), default=-1)
    for place, prompt in enumerate(prompts):
        goes_on = place == last and prompt in now and agent.suspension is not None
        if goes_on or place > last:
            await _until_done(agent, scenario, _next(agent, scenario) if goes_on else prompt)


async def _until_done(agent: Agent, scenario: Scenario, prompt: Any) -> None:
    for _ in range(_MOST_CALLS):
        await agent.invoke_async(prompt)
        if agent.suspension is None:
            return

        prompt = _next(agent, scenario)

    raise RuntimeError(f"the run still waits after {_MOST_CALLS} calls of the agent: {agent.suspension!r:.300}")


def _next(agent: Agent, scenario: Scenario) -> Any:
    """The prompt with which the paused run goes on."""
    pause = agent.suspension
    if pause is None or pause.kind == "crash":
        return None

    if pause.kind == "checkpoint":
        return {"checkpointResume": {"checkpoint": pause.checkpoint}}

    return [
        {"interruptResponse": {"interruptId": each.id, "response": scenario.answer(each)}} for each in pause.interrupts
    ]


def said_in(records: Iterable[Record]) -> set[str]:
    """Every text that some message of the log's own agent has, or had."""
    said: set[str] = set()
    for record in records:
        data: Any = record.data
        messages = data.get("messages", ()) if "messages" in data else [data["message"]] if "message" in data else []
        if not record.path:
            said.update(block["text"] for message in messages for block in message["content"] if "text" in block)

    return said


def _save(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
