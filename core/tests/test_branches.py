from __future__ import annotations

import asyncio
from itertools import permutations

import pytest
from kernel_fakes import FakeModel, FakeTool, LoopingModel, make_plugin, problems, use

from ropewalk import Agent, ModelOutcome
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.calls.invocation import REENTRANT
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record
from ropewalk.kits.messages.history import History


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def assistant(text):
    return {"role": "assistant", "content": [{"text": text}]}


def said(agent):
    return [block["text"] for message in agent.messages for block in message["content"] if "text" in block]


OLD = [{"role": "user", "content": [{"text": "old"}]}, {"role": "assistant", "content": [{"text": "times"}]}]


async def admit_beside(self, options):
    return REENTRANT


@pytest.mark.parametrize("order", ["the branch ends first", "the head ends first"])
async def test_two_runs_at_once_end_as_two_blocks(order):
    release = {"head": asyncio.Event(), "branch": asyncio.Event()}

    async def wait(call):
        await release[call.tool_use["input"]["who"]].wait()
        return "waited"

    turns = [use("wait", {"who": "head"}), use("wait", {"who": "branch"}), "end of one", "end of the other"]
    agent = Agent(
        model=FakeModel(*turns), tools=[FakeTool("wait", wait)], plugins=[make_plugin(admit=admit_beside)],
        messages=OLD,
    )  # fmt: skip
    head = asyncio.create_task(agent.invoke_async("head"))
    await asyncio.sleep(0.01)
    branch = asyncio.create_task(agent.invoke_async("branch"))
    await asyncio.sleep(0.01)
    first, second = (branch, head) if order == "the branch ends first" else (head, branch)
    release["branch" if first is branch else "head"].set()
    assert str(await first) == "end of one\n"
    release["head"].set()
    release["branch"].set()
    assert str(await second) == "end of the other\n"

    assert problems(agent.messages) == []
    texts = said(agent)
    assert texts[:2] == ["old", "times"]
    assert texts.index("branch") + 1 == texts.index("end of one" if first is branch else "end of the other")
    assert texts.count("head") == texts.count("branch") == 1
    assert len(agent.messages) == 2 + 4 + 4


@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
@pytest.mark.parametrize("late", [False, True], ids=["all at once", "the last begins when the first has ended"])
async def test_the_log_of_runs_beside_one_another_adds_up_to_the_agent_in_whatever_order_they_end(order, late):
    release, begun, log, writing = {who: asyncio.Event() for who in "abc"}, [], [], []

    async def wait(call):
        begun.append(call.tool_use["input"]["who"])
        await release[begun[-1]].wait()
        return "waited"

    async def write_records(self, records):
        assert not writing, "two writes overlap"
        writing.append(True)
        await asyncio.sleep(0)
        log.extend(records)
        await asyncio.sleep(0)
        writing.pop()

    async def answering(self, request, call_next):
        last = request.messages[-1]["content"][0]
        if "toolResult" in last:
            return ModelOutcome({"role": "assistant", "content": [{"text": "done"}]}, "end_turn")

        asked = {"toolUseId": last["text"], "name": "wait", "input": {"who": last["text"]}}
        return ModelOutcome({"role": "assistant", "content": [{"toolUse": asked}]}, "tool_use")

    async def go(who):
        task = asyncio.create_task(agent.invoke_async(who))
        for _ in range(1000):
            if who in begun:
                return task

            await asyncio.sleep(0)

        raise TimeoutError

    plugin = make_plugin(admit=admit_beside, write_records=write_records, around_model_call=answering)
    agent = Agent(model=FakeModel(), tools=[FakeTool("wait", wait)], plugins=[plugin], messages=OLD)
    tasks = {who: await go(who) for who in "abc" if not (late and who == order[-1])}
    for who in order:
        release[who].set()
        assert str(await tasks[who]) == "done\n"
        if order[-1] not in tasks:
            tasks[order[-1]] = await go(order[-1])

    assert problems(agent.messages) == []
    assert sorted(text for text in said(agent) if text in "abc") == ["a", "b", "c"]
    assert fold(LogState(), [Record.from_dict(record.to_dict()) for record in log]).messages == agent.messages


async def test_records_of_runs_beside_one_another_are_written_one_batch_after_the_other():
    log, writing = [], []

    async def write_records(self, records):
        assert not writing, "two writes overlap"
        writing.append(True)
        for _ in range(3):
            await asyncio.sleep(0)

        log.extend(records)
        writing.pop()

    async def pause(call):
        await asyncio.sleep(0)

    async def go(who):
        for turn in range(3):
            await agent.invoke_async(f"{who}{turn}")

    plugin = make_plugin(admit=admit_beside, write_records=write_records)
    agent = Agent(model=LoopingModel(every=3), tools=[FakeTool("step", pause)], plugins=[plugin])
    await asyncio.gather(*(go(who) for who in "abcd"))

    assert problems(agent.messages) == []
    assert sum(text[0] in "abcd" and text[1:].isdigit() for text in said(agent)) == 12
    assert fold(LogState(), [Record.from_dict(record.to_dict()) for record in log]).messages == agent.messages


async def test_a_branch_knows_nothing_of_the_run_it_stands_beside():
    release = asyncio.Event()
    seen = []

    async def hold(self, request, call_next):
        texts = [b["text"] for m in request.messages for b in m["content"] if "text" in b]
        seen.append(texts)
        if texts == ["one"]:
            await release.wait()

        return await call_next(request)

    plugin = make_plugin(admit=admit_beside, around_model_call=hold)
    agent = Agent(model=FakeModel("to two", "to one"), plugins=[plugin])
    head = asyncio.create_task(agent.invoke_async("one"))
    await asyncio.sleep(0.01)
    assert str(await agent.invoke_async("two")) == "to two\n"
    release.set()
    await head

    assert seen == [["one"], ["two"]]
    assert said(agent) == ["one", "to one", "two", "to two"]
    assert problems(agent.messages) == []


def test_a_clone_starts_where_its_original_was_constructed():
    given = [{"role": "user", "content": [{"text": "a"}]}, {"role": "assistant", "content": [{"text": "b"}]}]
    tool = FakeTool("add")
    agent = Agent(model=FakeModel("c", "d"), tools=[tool], messages=given, state={"n": 1}, system_prompt="be brief")
    agent("more")
    agent.state.set("n", 2)
    agent.plugin_state("p").set("x", 1)

    clone = agent.clone()

    assert clone.messages == given
    assert clone.state.get() == {"n": 1}
    assert clone.plugin_state("p").get() == {}
    assert clone.system_prompt == "be brief"
    assert clone.tool_names == ["add"]
    clone("and")
    assert said(clone) == ["a", "b", "and", "d"]
    assert said(agent) == ["a", "b", "more", "c"]
    clone.tool_registry.remove("add")
    assert agent.tool_names == ["add"]


async def test_a_clone_is_initialised_by_the_plugins_like_any_agent():
    ready, initialised = [], []

    def on_agent_ready(self, agent):
        ready.append(agent)

    async def init_agent(self, agent):
        initialised.append(agent)

    agent = Agent(
        model=FakeModel("x", "y"), plugins=[make_plugin(on_agent_ready=on_agent_ready, init_agent=init_agent)]
    )
    await agent.invoke_async("go")
    clone = agent.clone()
    await clone.invoke_async("go")

    assert ready == initialised == [agent, clone]


def test_a_branch_that_ends_while_context_plugins_have_the_list_waits_for_the_run():
    history = History([user("a"), assistant("b")])
    history.begin_run(None)
    branch = history.branch()
    base = list(branch.messages)
    branch.add_input([user("beside")])
    branch.add_assistant(assistant("answer"))
    history.add_input([user("c")])
    history.messages.locked = False  # as while manage_context is asked

    history.append_block(branch, base, None)
    assert [m["content"][0]["text"] for m in history.messages] == ["a", "b", "c"]
    history.messages.locked = True
    history.add_assistant(assistant("d"))
    assert history.end_run(paused=False) is True

    assert [m["content"][0]["text"] for m in history.messages] == ["a", "b", "c", "d", "beside", "answer"]


def test_what_a_branch_has_made_of_older_messages_is_not_appended_again():
    history = History([user("a"), assistant("b"), user("c"), assistant("d")])
    branch = history.branch()
    base = list(branch.messages)
    branch.add_input([user("beside")])
    branch.splice(HistoryEdit(branch.ids[0], branch.ids[1], (user("sum"), assistant("ok")), "shorter"), "p")
    branch.add_assistant(assistant("answer"))

    history.append_block(branch, base, None)

    assert [m["content"][0]["text"] for m in history.messages] == ["a", "b", "c", "d", "beside", "answer"]


CALLS = {
    "role": "assistant",
    "content": [{"text": "let me see"}, {"toolUse": {"toolUseId": "t1", "name": "see", "input": {}}}],
}
RESULT = {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "seen"}]}}


def go_on(branch):
    branch.add_assistant(assistant("more"))


def go_on_with_a_tool(branch):
    branch.add_assistant(CALLS)
    branch.add_user([RESULT])
    branch.add_assistant(assistant("more"))


def begin_as_the_assistant(branch):
    branch.add_input([assistant("let me see"), user("see")])
    branch.add_assistant(assistant("more"))


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (go_on, ["more"]),
        (go_on_with_a_tool, ["let me see", "t1", "seen", "more"]),
        (begin_as_the_assistant, ["let me see", "see", "more"]),
    ],
)
def test_what_a_branch_adds_to_the_answer_it_starts_at_is_appended_once(act, expected):
    history = History([user("a"), assistant("b")])
    branch = history.branch()
    base = list(branch.messages)
    act(branch)
    history.add_user([{"text": "c"}])
    history.add_assistant(assistant("d"))

    history.append_block(branch, base, None)

    told = []
    for block in (block for message in history.messages for block in message["content"]):
        result = block.get("toolResult")
        told.append(result["content"][0]["text"] if result else block.get("text") or block["toolUse"]["toolUseId"])

    assert problems(history.messages) == []
    assert told == ["a", "b", "c", "d", *expected]


async def test_a_call_without_a_prompt_beside_another_run_goes_on_and_its_answer_is_appended_once():
    waits = asyncio.Event()

    async def wait(call):
        await waits.wait()
        return "waited"

    agent = Agent(
        model=FakeModel(use("wait", {}), "and more", "the end"), tools=[FakeTool("wait", wait)], messages=OLD,
        plugins=[make_plugin(admit=admit_beside)],
    )  # fmt: skip
    head = asyncio.create_task(agent.invoke_async("head"))
    await asyncio.sleep(0.01)
    await agent.invoke_async()
    waits.set()
    await head

    assert problems(agent.messages) == []
    assert said(agent) == ["old", "times", "head", "the end", "and more"]


def test_what_is_behind_a_dropped_input_of_a_branch_is_appended():
    history = History([user("a"), assistant("b")])
    branch = history.branch()
    base = list(branch.messages)
    branch.add_input([user("beside")])
    branch.add_assistant(assistant("one"))
    branch.add_user([{"text": "two"}])
    branch.add_assistant(assistant("three"))
    branch.splice(HistoryEdit(branch.ids[2], branch.ids[3], (), "shorter"), "p")

    history.append_block(branch, base, None)

    told = [block["text"] for message in history.messages for block in message["content"]]
    assert told == ["a", "b", "two", "three"]
