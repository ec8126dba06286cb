"""Sub-agents in the log. The process is killed after every single record of a run; its successor ends the run."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from pydantic import BaseModel

from ropewalk import Agent, ModelThrottledException, ToolContext, hookimpl, tool
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use

pytestmark = pytest.mark.long

STEPS = 12


class Keeper:
    """The log of one agent. What is written passes through text, as in a file."""

    name = "keeper"

    def __init__(self, disk, who="parent"):
        self.disk = disk
        self.who = who

    @hookimpl
    def read_records(self, agent):
        records = records_of(self.disk, self.who)
        return fold(LogState(), records) if records else None

    @hookimpl
    async def write_records(self, records, agent):
        self.disk.extend((self.who, record.to_json()) for record in records)


class AtOnce:
    """Repeats a model call without a wait."""

    name = "at-once"

    @hookimpl
    async def decide_retry(self, failure):
        return 0.0 if isinstance(failure.error, ModelThrottledException) else None


def records_of(disk, who="parent"):
    return [Record.from_dict(json.loads(line)) for owner, line in disk if owner == who]


def model(*turns, fails=()):
    """Plays turns by the place in the conversation, so that a successor's model says the same."""
    to_fail = set(fails)

    def answer(request):
        prompts = [i for i, m in enumerate(request.messages) if any("text" in b for b in m["content"])]
        begun = max(i for i in prompts if request.messages[i]["role"] == "user")
        prompt = request.messages[begun]["content"][-1]["text"]
        place = sum(m["role"] == "assistant" for m in request.messages[begun:])
        if place in to_fail:
            to_fail.discard(place)
            return ModelThrottledException("slow down")

        turn = turns[place]
        return turn if isinstance(turn, str | Exception) else [each(prompt) for each in turn]

    return ScriptedModel(answer)


def work(name="work", label="1"):
    """A use of a tool; its id tells for which prompt."""
    return lambda prompt: use(name, {"of": f"{prompt}-{label}"}, id=f"{prompt}-{label}")


def ask(name="scout", label="T1"):
    return lambda prompt: use(name, {"input": f"{prompt}-{label}"}, id=f"{prompt}-{label}")


class Process:
    """What one process did."""

    def __init__(self, disk):
        self.disk = disk
        self.ran = []
        self.models = []

    def tools(self):
        @tool
        async def work(of: str) -> str:
            self.ran.append(of)
            return f"did {of}"

        @tool(context=True)
        async def asks(of: str, tool_context: ToolContext) -> str:
            answer = tool_context.interrupt("approve", {"of": of})
            self.ran.append(of)
            return f"{of}: {answer}"

        return [work, asks]

    def agent(self, *turns, name, tools=(), who=None, fails=(), **options):
        played = model(*turns, fails=fails)
        self.models.append((name, played))
        plugins = ["subagents", "executor", "structured", AtOnce(), *([Keeper(self.disk, who)] if who else [])]
        return Agent(
            model=played, name=name, agent_id=name, tools=[*self.tools(), *tools], plugins=plugins,
            callback_handler=None, **options,
        )  # fmt: skip

    def calls(self, name):
        return sum(played.calls for owner, played in self.models if owner == name)


async def finish(agent):
    """Has the agent end its run, as its caller would who does not know how far it is."""
    answered = []
    for _ in range(STEPS):
        pause = agent.suspension
        if pause is not None and pause.kind == "interrupt":
            answered += [each.id for each in pause.interrupts]
            response = [{"interruptResponse": {"interruptId": i.id, "response": "yes"}} for i in pause.interrupts]
            result = await agent.invoke_async(response)
        elif pause is not None and agent.messages:
            result = await agent.invoke_async(None)
        elif agent.messages and agent.messages[-1]["role"] == "assistant":
            return answered
        else:
            result = await agent.invoke_async("go")

        if result.stop_reason not in ("interrupt", "checkpoint"):
            return answered

    raise AssertionError(f"the run did not end in {STEPS} calls")


def texts(agent):
    return {
        block["toolResult"]["toolUseId"]: next(iter(block["toolResult"]["content"][0].values()))
        for message in agent.messages
        for block in message["content"]
        if "toolResult" in block
    }


async def killed_at_every_record(build):
    """Kills the run after each of its records, and lets a successor end it.

    Returns:
        Per kill, the log that the successor found, what it did, and its agent.
    """
    whole = Process([])
    agent = build(whole)
    await finish(agent)
    assert len(whole.ran) == len(set(whole.ran)), "a tool ran twice without any crash"
    cases = []
    for end in range(len(whole.disk) + 1):
        process = Process(whole.disk[:end])
        successor = build(process)
        await finish(successor)
        check(whole.disk[:end], process, successor, f"killed after record {end}: {whole.disk[end - 1 : end]}")
        cases.append((whole.disk[:end], process, successor))

    assert cases[-1][1].ran == [], "a run that had ended was gone on with"
    assert texts(cases[-1][2]) == texts(agent)
    return cases


def check(before, process, successor, told):
    records = [record for who in dict(before) for record in records_of(before, who)]
    finished = {record.data["id"] for record in records if record.kind == "tool_ended"}
    assert not finished & set(process.ran), told
    assert max(Counter(process.ran).values(), default=0) <= 1, told
    started = [record.data["tool_use"] for record in records if record.kind == "tool_started"]
    unasked = {each["toolUseId"] for each in started if each["name"] == "work"}
    assert not unasked & set(process.ran), told
    assert_valid_history(successor.messages)
    assert successor.messages[-1]["content"][0]["text"] == "done", told
    log = fold(LogState(), records_of(process.disk))
    assert (log.messages, log.open, log.nested) == (list(successor.messages), None, {}), told


def scout(process, *turns, name="scout", **options):
    return process.agent(*(turns or ([work()], [work(label="2"), work(label="3")], "found")), name=name, **options)


def asking_scout(process, **options):
    return scout(process, [work(), work("asks", "A")], [work("asks", "B")], "found", **options)


def parent(process, *turns, tools, **options):
    return process.agent(*turns, "done", name="parent", who="parent", tools=tools, **options)


# -- killed after every record ---------------------------------------------------------------------------------------


async def test_what_a_sub_agent_has_done_is_not_done_again():
    cases = await killed_at_every_record(lambda process: parent(process, [ask()], tools=[scout(process)]))

    for before, process, successor in cases:
        records = [record for record in records_of(before) if record.path == ("go-T1",)]
        answers = sum(r.kind == "message_appended" and r.data["message"]["role"] == "assistant" for r in records)
        assert process.calls("scout") == 3 - answers
        assert texts(successor)["go-T1"] == "found"


async def test_sub_agents_of_sub_agents_go_on():
    def build(process):
        inner = scout(process)
        for level in (1, 2):
            turns = [work(label="W"), ask(inner.name)], f"from {level}"
            inner = process.agent(*turns, name=f"level{level}", tools=[inner])

        return parent(process, [ask(inner.name)], tools=[inner])

    for _, _, successor in await killed_at_every_record(build):
        assert texts(successor)["go-T1"] == "from 2"


async def test_calls_of_one_sub_agent_at_once_go_on_each_for_itself():
    def build(process):
        return parent(process, [ask(), ask(label="T2"), ask(label="T3")], [ask(label="T4")], tools=[scout(process)])

    for _, _, successor in await killed_at_every_record(build):
        assert set(texts(successor).values()) == {"found"}


async def test_a_sub_agent_that_asks_is_asked_on():
    def build(process):
        mid = process.agent([ask(), work(label="W")], "mid", name="mid", tools=[asking_scout(process)])
        return parent(process, [ask("mid"), work("asks", "C")], tools=[mid])

    for _, _, successor in await killed_at_every_record(build):
        assert texts(successor)["go-T1"] == "mid"


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_kept_conversation_goes_on(at_once):
    def build(process):
        kept = scout(process).as_tool(preserve_context=True)
        turns = [[ask(), ask(label="T2")]] if at_once else [[ask()], [ask(label="T2")]]
        return parent(process, *turns, tools=[kept])

    for _, _, successor in await killed_at_every_record(build):
        assert set(texts(successor).values()) == {"found"}


async def test_a_kept_conversation_in_which_questions_are_asked_goes_on():
    def build(process):
        kept = asking_scout(process).as_tool(preserve_context=True)
        return parent(process, [ask()], [ask(label="T2")], tools=[kept])

    for _, _, successor in await killed_at_every_record(build):
        assert set(texts(successor).values()) == {"found"}


@pytest.mark.parametrize("make", [scout, asking_scout])
async def test_a_sub_agent_with_a_log_of_its_own_goes_on(make):
    def build(process):
        kept = make(process, who="scout").as_tool(preserve_context=True)
        return parent(process, [ask()], [ask(label="T2")], tools=[kept])

    cases = await killed_at_every_record(build)
    assert all(set(texts(successor).values()) == {"found"} for _, _, successor in cases)
    before, _, _ = cases[-1]
    assert not any(record.path for who in ("parent", "scout") for record in records_of(before, who))


async def test_tools_at_once_a_question_and_a_retry_without_sub_agents():
    def build(process):
        turns = [work(), work(label="2"), work(label="3")], [work("asks", "A"), work(label="4")]
        return parent(process, *turns, tools=(), fails=(0, 1))

    await killed_at_every_record(build)


async def test_a_sub_agent_whose_model_fails_is_told_of_once():
    def build(process):
        return parent(process, [ask()], tools=[scout(process, [work()], ValueError("no model"))])

    for _, _, successor in await killed_at_every_record(build):
        told = texts(successor)["go-T1"]
        assert told.startswith("Error: agent 'scout' failed: ValueError")


async def test_the_successor_is_killed_too():
    def build(process):
        mid = process.agent([ask(), work(label="W")], "mid", name="mid", tools=[asking_scout(process)])
        return parent(process, [ask("mid"), work("asks", "C")], tools=[mid])

    chance = random.Random(7)
    whole = Process([])
    await finish(build(whole))
    for _ in range(60):
        disk, told = whole.disk, []
        for _ in range(3):
            told.append(chance.randint(len(told) and told[-1], len(disk)))
            process = Process(disk[: told[-1]])
            successor = build(process)
            await finish(successor)
            check(disk[: told[-1]], process, successor, f"killed after the records {told}")
            assert texts(successor)["go-T1"] == "mid"
            disk = process.disk


# -- other ways to go on ---------------------------------------------------------------------------------------------


async def test_records_of_a_sub_agent_tell_whose_they_are():
    process = Process([])
    inner = process.agent([ask("scout")], "mid", name="mid", tools=[scout(process)])
    await finish(parent(process, [ask("mid")], tools=[inner]))

    records = records_of(process.disk)
    assert {record.path for record in records} == {(), ("go-T1",), ("go-T1", "go-T1-T1")}
    assert len({(record.run, record.number) for record in records}) == len(records)
    assert len({record.run for record in records}) == 3


async def test_a_pause_that_a_snapshot_brought_goes_on_and_is_logged():
    def build(process):
        return parent(process, [ask()], tools=[asking_scout(process)])

    first = Process([])
    agent = build(first)
    await agent.invoke_async("go")
    text = json.dumps(agent.take_snapshot(preset="session", include=["suspension"]).to_dict())

    def restored(process):
        successor = build(process)
        if not process.disk:
            successor.load_snapshot(Snapshot.from_dict(json.loads(text)))

        return successor

    cases = await killed_at_every_record(restored)
    assert {r.kind for r in records_of(cases[-1][0]) if r.path} >= {"snapshot_loaded", "run_resumed", "run_ended"}


async def test_a_kept_conversation_that_has_gone_on_is_not_overwritten():
    process = Process([])
    await finish(parent(process, [ask()], tools=[scout(process).as_tool(preserve_context=True)]))
    middle = next(i for i, (_, line) in enumerate(process.disk) if '"tool_ended"' in line)

    later = Process(process.disk[:middle])
    kept = scout(later)
    await kept.invoke_async("something else")
    before = list(kept.messages)
    successor = parent(later, [ask()], tools=[kept.as_tool(preserve_context=True)])
    await finish(successor)

    assert "could not go on after its process had ended" in texts(successor)["go-T1"]
    assert kept.messages == before


async def test_the_answer_of_a_kept_conversation_stands_when_that_has_gone_on():
    process = Process([])
    kept = scout(process)
    await finish(parent(process, [ask()], tools=[kept.as_tool(preserve_context=True)]))
    end = next(i for i, (_, line) in enumerate(process.disk) if '"run_ended"' in line) + 1

    later = Process(process.disk[:end])
    await kept.invoke_async("something else")
    successor = parent(later, [ask()], tools=[kept.as_tool(preserve_context=True)])
    await finish(successor)

    assert texts(successor)["go-T1"] == "found"
    assert len(kept.messages) == 12


async def test_structured_output_is_asked_for_again_when_only_the_log_had_it():
    class Found(BaseModel):
        what: str

    def build(process):
        fill = lambda prompt: use("Found", {"what": "gold"}, id=f"{prompt}-F")  # noqa: E731
        inner = scout(process, [work()], [fill], [fill], structured_output_model=Found)
        return parent(process, [ask()], tools=[inner])

    for _, _, successor in await killed_at_every_record(build):
        assert texts(successor)["go-T1"] == {"what": "gold"}
