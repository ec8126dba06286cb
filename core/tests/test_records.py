"""The log of a run: its order, its price when nobody writes it, and what a failing write does."""

from __future__ import annotations

import asyncio
import json

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, parallel, problems, use

from ropewalk import Agent, HistoryEdit, current_run
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Journal, Record
from ropewalk.kits.log.standing import Standing


async def quick(call):
    return "ok"


def logged(*turns, tools=("t",), plugins=(), **options):
    kept, batches = [], []

    async def write_records(self, records):
        batches.append([record.kind for record in records])
        await asyncio.sleep(0)
        kept.extend(records)

    writer = make_plugin("writer", write_records=write_records)
    tools = [FakeTool(name, quick) for name in tools]
    agent = Agent(model=FakeModel(*turns), tools=tools, plugins=[writer, *plugins], **options)
    return agent, kept, batches


def test_the_records_of_a_tool_cycle_come_in_order(ask):
    agent, records, _ = logged(use("t", tool_use_id="T"), "done")
    ask(agent, "go")

    assert [record.kind for record in records] == [
        "snapshot_loaded",
        "run_started",
        "message_appended",
        "model_started",
        "model_ended",
        "message_appended",
        "tool_started",
        "tool_ended",
        "message_appended",
        "model_started",
        "model_ended",
        "message_appended",
        "run_ended",
    ]
    assert [record.number for record in records] == list(range(13))
    assert len({record.run for record in records}) == 1
    assert json.loads(json.dumps([record.to_dict() for record in records]))
    log = fold(LogState(), records)
    assert log.messages == agent.messages
    assert list(records[8].data["message"]["content"]) == [{"toolResultOf": "T"}]


@pytest.mark.parametrize("failing", ["started", "ended"])
def test_a_tool_runs_only_once_its_start_is_written(failing):
    tool = FakeTool("t", quick)

    async def write_records(self, records):
        if any(record.kind == f"tool_{failing}" for record in records):
            raise OSError("disk full")

    agent = Agent(model=FakeModel(use("t"), "x"), tools=[tool], plugins=[make_plugin(write_records=write_records)])
    with pytest.raises(OSError, match="disk full"):
        agent("go")

    assert tool.calls == (failing == "ended")
    assert problems(agent.messages) == []


def test_no_record_is_built_when_nobody_writes(monkeypatch, ask):
    built = []
    monkeypatch.setattr(Journal, "add", lambda self, kind, data: built.append(kind))
    monkeypatch.setattr(Record, "__init__", lambda self, *a, **k: built.append("record"))
    agent = Agent(model=FakeModel(use("t"), "x"), tools=[FakeTool("t", quick)])
    ask(agent, "go")

    assert built == []


async def test_records_of_calls_at_once_are_written_one_batch_after_the_other():
    order, writing = [], []

    async def write_records(self, records):
        writing.append(True)
        assert len(writing) == 1, "two writes overlap"
        for _ in range(7 - len(order) % 5):
            await asyncio.sleep(0)

        order.extend(record.number for record in records)
        writing.pop()

    turn = [use("t") for _ in range(6)]
    agent = Agent(
        model=FakeModel(turn, "x"),
        tools=[FakeTool("t", quick)],
        plugins=[parallel(), make_plugin(write_records=write_records)],
    )
    await agent.invoke_async("go")

    assert order == sorted(order) == list(range(len(order)))


async def test_no_tool_of_several_at_once_runs_before_its_start_is_written():
    written, ran_unannounced = set(), []

    async def write_records(self, records):
        for _ in range(5):
            await asyncio.sleep(0)

        written.update(record.data["tool_use"]["toolUseId"] for record in records if record.kind == "tool_started")

    async def body(call):
        if call.tool_use["toolUseId"] not in written:
            ran_unannounced.append(call.tool_use["toolUseId"])

    async def notes_first(self, call, call_next, agent):
        agent.state.set(call.tool_use["toolUseId"], 1)  # a record that somebody else's commit may take along
        if call.tool_use["toolUseId"] == "T0":
            await current_run().commit()

        return await call_next(call)

    turn = [use("t", tool_use_id=f"T{n}") for n in range(5)]
    agent = Agent(
        model=FakeModel(turn, "x"),
        tools=[FakeTool("t", body)],
        plugins=[parallel(), make_plugin("n", around_tool_call=notes_first), make_plugin(write_records=write_records)],
    )
    await agent.invoke_async("go")

    assert len(written) == 5
    assert ran_unannounced == []


def test_edits_and_undone_inputs_are_records_too():
    async def manage_context(self, request, reason):
        if reason == "after_invocation" and len(request.ids) > 2:
            return [HistoryEdit(request.ids[0], request.ids[1], (), "too long")]

        return None

    agent, records, _ = logged(
        "a", "b", ValueError("no"), plugins=[make_plugin("trimmer", manage_context=manage_context)]
    )
    agent("1")
    agent("2")
    spliced = [record.data for record in records if record.kind == "history_spliced"]
    assert [(d["plugin"], d["reason"], d["at"], d["gone"]) for d in spliced] == [("trimmer", "too long", 0, 2)]

    with pytest.raises(ValueError, match="no"):
        agent("3")

    undone = [record.data for record in records if record.kind == "history_spliced"][-1]
    assert undone["plugin"] == "kernel"
    assert records[-1].kind == "run_ended"
    assert records[-1].data["stop_reason"] == "error: ValueError"


def test_a_direct_call_that_is_not_recorded_is_not_in_the_log():
    agent, records, _ = logged("hi", messages=[{"role": "user", "content": [{"text": "before"}]}])

    agent.tool.t(record_direct_tool_call=False)
    assert records == []
    agent("go")

    assert records[0].kind == "snapshot_loaded"
    assert fold(LogState(), records).messages == agent.messages


def test_records_of_another_run_do_not_count_for_the_one_that_broke_off():
    log = fold(
        LogState(),
        [
            Record("r", 0, "run_started", {}),
            Record("r", 1, "message_appended", {"id": 0, "message": {"role": "user", "content": [{"text": "x"}]}}),
            Record("other", 0, "state_changed", {"cell": None, "key": "k", "value": 1}),
        ],
    )

    assert (log.pause.run, log.pause.records, log.state) == ("r", 2, {"k": 1})


async def test_what_was_left_unwritten_waits_for_the_write_under_way_and_keeps_its_place():
    written = []

    async def write(records):
        written.extend(record.data["key"] for record in records)

    standing = Standing()
    journal = standing.unwritten = Journal("r", write, queue=standing.queue)
    journal.add("once", {"key": "first", "value": 1})
    async with journal.writing:
        taken = journal.take()
        task = asyncio.create_task(standing.write_leftovers())
        for _ in range(5):
            await asyncio.sleep(0)

        assert written == []
        journal.put_back(taken)  # that write has failed
        journal.add("once", {"key": "second", "value": 2})

    await asyncio.wait_for(task, 10)
    assert written == ["first", "second"]
    assert standing.unwritten is None


async def test_what_a_run_beside_has_written_is_not_written_again():
    batches = []

    async def write(records):
        batches.append(len(records))

    standing = Standing()
    journal = standing.unwritten = Journal("r", write, queue=standing.queue)
    journal.add("once", {"key": "k", "value": 1})
    beside = Journal("s", write, queue=standing.queue)
    async with beside.writing:
        await write(beside.take())

    await standing.write_leftovers()
    assert batches == [1]
    assert standing.unwritten is None
