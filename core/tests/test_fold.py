"""The log adds up to the agent, says what is wrong with a record, and loses nothing that could not be written."""

from __future__ import annotations

import json

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, parallel, use

from ropewalk import Agent, current_run
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import SCHEMA_VERSION, Journal, Record
from ropewalk.kits.log.standing import Standing
from ropewalk.kits.state import JSONState


def written(kept, broken=lambda: False):
    """A plugin that keeps the records, while it is not broken."""

    async def write_records(self, records):
        if broken():
            raise OSError("disk full")

        kept.extend(records)

    return make_plugin("writer", write_records=write_records)


async def test_changes_of_state_in_a_run_and_between_runs_are_in_the_log():
    kept = []

    async def body(call):
        agent.state.set("inside", 1)
        agent.state.set("gone", 2)
        agent.state.delete("gone")
        return "ok"

    agent = Agent(model=FakeModel(use("t"), "done", "again"), tools=[FakeTool("t", body)], plugins=[written(kept)])
    await agent.invoke_async("go")
    assert fold(LogState(), kept).state == {"inside": 1}

    agent.state.set("between", 3)
    agent.state.delete("inside")
    await agent.invoke_async("go")

    assert fold(LogState(), kept).state == {"between": 3} == agent.state.get()
    assert [record.kind for record in kept].count("snapshot_loaded") == 1


async def test_what_was_done_once_is_in_the_log_of_a_run_that_breaks_off():
    kept = []

    async def around(self, invocation, call_next):
        await current_run().once("early", lambda: 1)
        return await call_next(invocation)

    async def body(call):
        await current_run().once("late", lambda: {"x": 2})
        return "ok"

    plugin = make_plugin("around", around_invocation=around)
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", body)], plugins=[written(kept), plugin])
    await agent.invoke_async("go")
    kinds = [record.kind for record in kept]
    cut = len(kinds) - kinds[::-1].index("once")  # the process ends behind the second of them

    assert kinds.count("once") == 2
    assert fold(LogState(), kept[:cut]).open["once"] == {"early": 1, "late": {"x": 2}}


async def test_records_that_could_not_be_written_come_first_in_the_next_run_also_after_a_second_failure():
    kept, state = [], {"broken": False}
    agent = Agent(model=FakeModel("one", "two"), plugins=[written(kept, lambda: state["broken"])])
    await agent.invoke_async("go")
    before = len(kept)
    state["broken"] = True
    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            await agent.invoke_async("lost?")

    assert len(kept) == before
    state["broken"] = False
    await agent.invoke_async("go on")

    assert fold(LogState(), kept).messages == agent.messages


def test_a_record_of_an_unknown_kind_or_that_does_not_fit_is_named():
    def record(kind, data):
        return Record("r", 7, kind, data)

    with pytest.raises(ValueError, match=r"record 7 of run r is of the unknown kind 'novel'"):
        fold(LogState(), [record("novel", {})])

    for kind, data in [
        ("run_resumed", {"answers": {}}),  # from no pause
        ("history_spliced", {"at": 0, "gone": 1, "ids": [], "messages": []}),  # more than there is
        ("history_spliced", {"at": -1, "gone": 0, "ids": [], "messages": []}),
        ("history_spliced", {"at": 0, "gone": 0, "ids": [0], "messages": []}),  # a message is missing
        ("state_changed", {}),
    ]:
        with pytest.raises(ValueError, match=rf"record 7 of run r \({kind}\) does not fit what came before"):
            fold(LogState(), [record(kind, data)])


@pytest.mark.parametrize("data", [{"text": "plain"}, {"bytes": b"\x00\xff"}, {"text": '"$bytes'}, {"text": "ß 😀"}])
def test_a_record_comes_back_from_its_line(data):
    record = Record("r", 3, "once", data, 1.5, ("T1", "T2"))
    line = record.to_json()
    line.encode()

    assert "\n" not in line
    assert Record.from_json(json.loads(line), line) == record
    assert Record.from_json(json.loads(line), line.encode()) == record
    assert Record.from_dict(json.loads(line)) == record


def test_half_a_character_does_not_keep_a_record_from_being_written():
    line = Record("r", 3, "once", {"text": "a\ud83d"}).to_json()

    assert Record.from_json(json.loads(line), line.encode()).data == {"text": "a\ufffd"}


def test_what_is_no_record_or_of_a_newer_version_is_refused():
    good = Record("r", 0, "once", {}).to_dict()
    bad = [[], None, {**good, "v": "1"}, {**good, "n": True}, {**good, "data": []}, {**good, "path": 1}]
    for value in [
        *bad,
        *({k: v for k, v in good.items() if k != key} for key in ("run", "n", "kind", "t", "v", "data")),
    ]:
        with pytest.raises(ValueError, match="no record of a run"):
            Record.from_dict(value)

    with pytest.raises(ValueError, match="upgrade ropewalk-core"):
        Record.from_dict({**good, "v": SCHEMA_VERSION + 1})


def test_a_nested_journal_joins_the_records_of_its_own_and_counts_its_own():
    async def write(records): ...

    outer = Journal("outer", write)
    inner = outer.nested("inner", "T1")
    deeper = inner.nested("deeper", "T2", 5)
    outer.add("once", {})
    inner.add("once", {})
    deeper.add("once", {})

    taken = outer.take()
    assert [(r.run, r.number, r.path) for r in taken] == [
        ("outer", 0, ()),
        ("inner", 0, ("T1",)),
        ("deeper", 5, ("T1", "T2")),
    ]
    assert (outer.pending, deeper.number) == (False, 6)
    outer.add("once", {})
    outer.put_back(taken)
    assert [r.run for r in deeper.take()] == ["outer", "inner", "deeper", "outer"]


@pytest.mark.parametrize("kind", ["model_started", "model_ended", "tool_started"])
async def test_a_run_that_breaks_off_in_its_second_cycle_is_known_to_be_there(kind):
    kept = []
    turns = [use("t", tool_use_id="A"), use("t", tool_use_id="B"), "done"]
    agent = Agent(model=FakeModel(*turns), tools=[FakeTool("t")], plugins=[written(kept)])
    await agent.invoke_async("go")
    second = [place for place, record in enumerate(kept) if record.kind == kind][1]

    broken_off = fold(LogState(), kept[: second + 1]).open

    assert (broken_off["cycle"], broken_off["attempt"]) == (1, 1)
    assert broken_off["position"] == ("tools" if kind == "tool_started" else "model")
    assert broken_off.get("unknown", {}) == ({"B": 1} if kind == "tool_started" else {})


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
async def test_the_answers_to_calls_are_in_the_log_when_the_run_fails_after_them(error):
    kept = []

    async def around(self, call, call_next):
        await call_next(call)
        raise error("stop")

    plugins = [written(kept), make_plugin("around", around_tool_call=around)]
    agent = Agent(model=FakeModel(use("t"), use("t")), tools=[FakeTool("t")], plugins=plugins)
    with pytest.raises(error, match="stop"):
        await agent.invoke_async("go")

    assert len(agent.messages) == 3
    assert fold(LogState(), kept).messages == agent.messages


async def test_changes_between_runs_that_could_not_be_written_or_came_meanwhile_are_kept():
    log, kept, state = Standing(), [], {"broken": True}
    cell = JSONState({})
    log.follow(None, cell)
    log.agrees = True
    cell.set("a", 1)

    async def write(records):
        if state["broken"]:
            raise OSError("disk full")

        if not kept:
            cell.set("b", 2)

        kept.extend(records)

    with pytest.raises(OSError, match="disk full"):
        await log.write_changes("r", write)

    state["broken"] = False
    for _ in range(3):
        await log.write_changes("r", write)

    assert [record.data["key"] for record in kept] == ["a", "b"]


async def test_the_input_is_in_the_log_before_the_model_is_called():
    kept, known = [], []

    class Model:
        context_window = None

        async def stream(self, request):
            known.append([record.kind for record in kept])
            async for event in FakeModel("done").stream(request):
                yield event

    await Agent(model=Model(), plugins=[written(kept)]).invoke_async("go")

    assert known == [["snapshot_loaded", "run_started", "message_appended"]]


async def test_a_run_that_was_paused_and_breaks_off_after_it_went_on_asks_again():
    kept = []

    async def body(call):
        return call.interrupt("ok?")

    turns = [[use("t", tool_use_id="A"), use("t", tool_use_id="B")], "done"]
    plugins = [written(kept), parallel()]
    agent = Agent(model=FakeModel(*turns), tools=[FakeTool("t", body)], plugins=plugins)
    first, _ = (await agent.invoke_async("go")).interrupts
    await agent.invoke_async([{"interruptResponse": {"interruptId": first.id, "response": "yes"}}])
    resumed = [record.kind for record in kept].index("run_resumed")

    broken_off = fold(LogState(), kept[: resumed + 1]).open

    assert (broken_off["kind"], broken_off["position"], broken_off["interrupts"]) == ("crash", "tools", ())
    assert broken_off["answers"] == {first.id: "yes"}


async def test_what_a_run_could_not_write_and_what_came_beside_it_is_written_by_the_next_in_its_order():
    kept, state = [], {"broken": False}

    async def body(call):
        state["broken"] = True
        return "ok"

    turns = [use("t", tool_use_id="A"), "done", "two"]
    agent = Agent(
        model=FakeModel(*turns), tools=[FakeTool("t", body)], plugins=[written(kept, lambda: state["broken"])]
    )
    with pytest.raises(OSError, match="disk full"):
        await agent.invoke_async("go")

    state["broken"] = False
    await agent.invoke_async("go on")

    log = fold(LogState(), kept)
    assert log.messages == agent.messages
    assert [record.kind for record in kept].count("tool_ended") == 1
    assert [record.kind for record in kept].count("run_ended") == 2
    assert [record.kind for record in kept].count("snapshot_loaded") == 1


async def test_what_a_run_could_not_write_is_written_when_the_agent_is_left_too():
    kept, state = [], {"broken": False}

    async def body(call):
        state["broken"] = True
        return "ok"

    agent = Agent(
        model=FakeModel(use("t")), tools=[FakeTool("t", body)], plugins=[written(kept, lambda: state["broken"])]
    )
    with pytest.raises(OSError, match="disk full"):
        await agent.invoke_async("go")

    agent.state.set("late", 1)
    with pytest.raises(OSError, match="disk full"):
        await agent.log.write_changes("r", lambda records: agent.hooks.write_records(records, agent))

    state["broken"] = False
    for _ in range(2):
        await agent.log.write_changes("r", lambda records: agent.hooks.write_records(records, agent))

    log = fold(LogState(), kept)
    assert (log.messages, log.state) == (agent.messages, {"late": 1})
    assert [record.kind for record in kept][-2:] == ["run_ended", "state_changed"]


async def test_just_the_agent_that_answers_a_call_joins_the_log_of_the_run_that_called_it():
    kept = []
    sub, other = Agent(model=FakeModel("sub")), Agent(model=FakeModel("other"))

    async def body(call):
        with call.nesting(sub):
            await other.invoke_async("go")
            await sub.invoke_async("go")

        await other.invoke_async("go on")
        return "ok"

    other.model.turns.append("other")
    agent = Agent(
        model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[FakeTool("t", body)], plugins=[written(kept)]
    )
    await agent.invoke_async("go")

    assert {record.path for record in kept} == {(), ("T",)}
    inner = [record for record in kept if record.path]
    assert len({record.run for record in inner}) == 1
    assert [record.number for record in inner] == list(range(len(inner)))
    said = [record.data["message"]["content"] for record in inner if record.kind == "message_appended"]
    assert said[-1] == [{"text": "sub"}]


@pytest.mark.parametrize("agrees", [False, True])
async def test_changes_are_written_just_where_the_log_agrees_and_there_are_any(agrees):
    log, written_at_all = Standing(), []
    log.agrees = agrees

    async def write(records):
        written_at_all.append(len(records))

    await log.write_changes("r", write)
    assert written_at_all == []
    cell = JSONState({})
    log.follow(None, cell)
    cell.set("a", 1)
    await log.write_changes("r", write)
    assert written_at_all == ([1] if agrees else [])
