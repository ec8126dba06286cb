"""Sub-agents in the log. The process is killed after every single record of a run; its successor ends the run."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from ropewalk import Agent, ModelThrottledException, ToolContext, hookimpl, tool
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use

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
        return turn if isinstance(turn, str) else [each(prompt) for each in turn]

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
        plugins = ["subagents", "retry", "executor", *([Keeper(self.disk, who)] if who else [])]
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


async def killed_at_every_record(build, *, same=("work",), known=True):
    """Kills the run after each of its records and lets a successor end it; yields what each successor did."""
    whole = Process([])
    agent = build(whole)
    await finish(agent)
    expected = texts(agent)
    assert len(whole.ran) == len(set(whole.ran)), "a tool ran twice without any crash"
    cases = []
    for end in range(len(whole.disk) + 1):
        before = whole.disk[:end]
        process = Process(list(before))
        successor = build(process)
        await finish(successor)
        check(before, process, successor, f"killed after record {end}: {before[-1:]}")
        cases.append((before, process, successor))

    last_before, last, successor = cases[-1]
    assert last.ran == [], "a run that had ended was gone on with"
    assert texts(successor) == expected
    return whole, cases


def check(before, process, successor, told):
    records = [record for who in dict(before) for record in records_of(before, who)]
    finished = {record.data["id"] for record in records if record.kind == "tool_ended"}
    assert not finished & set(process.ran), told
    assert max(Counter(process.ran).values(), default=0) <= 1, told
    started = {r.data["tool_use"]["toolUseId"] for r in records if r.kind == "tool_started"}
    asked = {r.data["tool_use"]["toolUseId"] for r in records if r.kind == "tool_started" and r.data["tool_use"]["name"] == "asks"}
    assert not (started - asked) & set(process.ran), told
    assert_valid_history(successor.messages)
    assert successor.messages[-1]["content"][0]["text"] == "done", told
    log = fold(LogState(), records_of(process.disk))
    assert (log.messages, log.open, log.nested) == (list(successor.messages), None, {}), told


def scout(process, *turns, name="scout", **options):
    return process.agent(*(turns or ([work()], [work(label="2"), work(label="3")], "found")), name=name, **options)


async def test_a_sub_agent():
    def build(process):
        return process.agent([ask()], "done", name="parent", who="parent", tools=[scout(process)])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        kinds = [(record.kind, record.path) for record in records_of(before)]
        if ("run_ended", ("go-T1",)) in kinds:
            assert process.calls("scout") == 0
        if ("message_appended", ("go-T1",)) in kinds:
            assert process.calls("scout") <= 3
        assert texts(successor)["go-T1"] == "found"


async def test_sub_agents_of_sub_agents():
    def build(process):
        inner = scout(process)
        for level in (1, 2):
            inner = process.agent([work(label="W"), ask(inner.name)], f"from {level}", name=f"level{level}", tools=[inner])
        return process.agent([ask(inner.name)], "done", name="parent", who="parent", tools=[inner])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        assert texts(successor)["go-T1"] == "from 2"


async def test_calls_of_one_sub_agent_at_once():
    def build(process):
        return process.agent([ask(), ask(label="T2"), ask(label="T3")], [ask(label="T4")], "done", name="parent", who="parent", tools=[scout(process)])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        assert set(texts(successor).values()) == {"found"}


async def test_a_sub_agent_that_asks():
    def build(process):
        inner = scout(process, [work(), work("asks", "A")], [work("asks", "B")], "found")
        mid = process.agent([ask(), work(label="W")], "mid", name="mid", tools=[inner])
        return process.agent([ask("mid"), work("asks", "C")], "done", name="parent", who="parent", tools=[mid])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        assert texts(successor)["go-T1"] == "mid"


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_sub_agent_that_keeps_its_conversation(at_once):
    def build(process):
        kept = scout(process).as_tool(preserve_context=True)
        uses = [[ask(), ask(label="T2")]] if at_once else [[ask()], [ask(label="T2")]]
        return process.agent(*uses, "done", name="parent", who="parent", tools=[kept])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        assert set(texts(successor).values()) == {"found"}


async def test_a_sub_agent_that_keeps_its_conversation_and_asks():
    def build(process):
        inner = scout(process, [work(), work("asks", "A")], [work("asks", "B")], "found")
        return process.agent([ask()], [ask(label="T2")], "done", name="parent", who="parent", tools=[inner.as_tool(preserve_context=True)])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        assert set(texts(successor).values()) == {"found"}


async def test_tools_at_once_a_question_and_a_retry():
    def build(process):
        return process.agent(
            [work(), work(label="2"), work(label="3")], [work("asks", "A"), work(label="4")], "done",
            name="parent", who="parent", fails=(0, 1),
        )

    await killed_at_every_record(build)


@pytest.mark.parametrize("asking", [False, True])
async def test_a_sub_agent_with_a_log_of_its_own(asking):
    def build(process):
        turns = ([work(), work("asks", "A")], [work("asks", "B")], "found") if asking else ()
        inner = scout(process, *turns, who="scout")
        return process.agent([ask()], [ask(label="T2")], "done", name="parent", who="parent", tools=[inner.as_tool(preserve_context=True)])

    whole, cases = await killed_at_every_record(build)
    for before, process, successor in cases:
        assert set(texts(successor).values()) == {"found"}
