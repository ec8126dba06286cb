"""The crash kit, and that it finds what is wrong."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import pathlib
import sys
from dataclasses import dataclass, replace

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import SessionManager, StoredLog
from ropewalk.kits.sessions.retention import Retention
from ropewalk_testing import crash
from ropewalk_testing.crash.judging import Case, known_of, problems
from ropewalk_testing.crash.zygote import preload

pytestmark = pytest.mark.long

spec = importlib.util.spec_from_file_location(
    "line_store", pathlib.Path(__file__).parents[1] / "stores" / "line_store.py"
)
line_store = sys.modules.setdefault("line_store", importlib.util.module_from_spec(spec))
spec.loader.exec_module(line_store)
LineStore = line_store.LineStore


def open_store(folder):
    return LineStore(folder)


SMALL = crash.Scenario(parallel=2, sequential=2, checkpoint=False, retry=False, compaction=False)


def test_a_run_survives_a_sample_of_crashes():
    report = crash.run(open_store, sample=24, seed=1, processes=2)

    report.check()
    assert report.kills == 24
    assert report.points > 100
    assert "kill points, 24 tried" in str(report)


def test_a_run_survives_two_crashes_in_a_row():
    crash.run(open_store, sample=12, seed=2, crashes=2, processes=2).check()


@pytest.mark.parametrize("retention", [Retention(keep_last=1), Retention(compact_to_latest=True)], ids=str)
def test_a_run_survives_crashes_around_compactions(retention):
    crash.run(open_store, crash.Scenario(retention=retention), sample=12, seed=3, processes=2).check()


# -- it finds what is wrong ----------------------------------------------------------------------------------------


class ForgetsStarts(LineStore):
    """When it is read it does not know that tools had started whose end it does not know."""

    def read(self, key):
        found = super().read(key)
        if found is None:
            return None

        kept = itertools.dropwhile(lambda record: record.kind in ("tool_started", "state_changed"), found.records[::-1])
        return StoredLog(list(kept)[::-1], found.position)


class AnswersFirst(LineStore):
    """Says that records are written before they are: every second write is put off to the next one."""

    late = ()

    async def append(self, key, records, position):
        if not self.late:
            self.late = (list(records), position)
            return position + len(records)

        (late, position), self.late = self.late, ()
        return await super().append(key, [*late, *records], position)


def open_forgetful(folder):
    return ForgetsStarts(folder)


def open_early(folder):
    return AnswersFirst(folder)


def test_a_store_that_forgets_is_found_out():
    report = crash.run(open_forgetful, SMALL, sample=60, seed=1, processes=2)

    told = [problem for each in report.findings for problem in each.problems]
    assert any("the log does not know that it had started" in problem for problem in told)
    with pytest.raises(AssertionError, match="killed at write"):
        report.check()


def test_a_store_that_is_wrong_without_a_crash_is_found_out():
    with pytest.raises(RuntimeError, match="nobody was killed, and already"):
        crash.run(open_early, SMALL)


@dataclass(frozen=True)
class RunsTwice(crash.Scenario):
    """A tool that says it may run again, and is not expected to."""

    def agent(self, session_manager, journal):
        agent = super().agent(session_manager, journal)
        agent.tool_registry.get("in_a_row_0").on_unknown = "rerun"
        return agent


def test_a_tool_that_runs_twice_is_found_out():
    report = crash.run(open_store, RunsTwice(parallel=0, sequential=1, ask=False, interrupt=False))

    assert any("ran again without a word" in problem for each in report.findings for problem in each.problems)


@dataclass(frozen=True)
class Fails(crash.Scenario):
    def agent(self, session_manager, journal):
        raise ZeroDivisionError("no agent")


def test_a_scenario_that_fails_without_a_crash_says_so():
    with pytest.raises(RuntimeError, match="no agent"):
        crash.run(open_store, Fails())


def test_a_scenario_of_a_test_that_is_on_no_path_is_found(monkeypatch):
    here = pathlib.Path.cwd()
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != here])
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    with pytest.raises(RuntimeError, match="no agent"):
        crash.run(open_store, Fails())


def broken_factory(folder, url):
    raise ConnectionError(f"no server at {url}")


def test_a_store_that_cannot_be_opened_says_so():
    with pytest.raises(RuntimeError, match="no server at db:1"):
        crash.run(functools.partial(broken_factory, url="db:1"))


# -- its parts -----------------------------------------------------------------------------------------------------


def test_a_process_is_killed_before_and_after_every_record():
    points = crash.kill_points([crash.Step(("a", "b", "c")), crash.Step(("d",)), crash.Step(("e", "f"), True)])

    assert [(p.step, p.place, p.written, p.kind) for p in points] == [
        (0, "before", 0, "a"), (0, "torn", 1, "a"), (0, "torn", 2, "b"), (0, "after", 3, "c"),
        (1, "before", 0, "d"), (1, "after", 1, "d"),
        (2, "before", 0, "e"), (2, "after", 2, "f"),
    ]  # fmt: skip


def test_the_journal_remembers_what_happened(tmp_path):
    journal = crash.EffectJournal(tmp_path / "effects", phase=2)
    assert journal.read() == []
    journal.note("pay", "T1", "run:T1")

    assert journal.read() == [crash.Happened(2, "pay", "T1", "run:T1", "irreversible")]


USES = ("T1", "T2")


def history(*results):
    blocks = [{"toolUse": {"toolUseId": use, "name": "pay", "input": {}}} for use in USES]
    return [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [{"toolResult": r} for r in results]},
        {"role": "assistant", "content": [{"text": "done"}]},
    ]


def result(use, text="paid", status="success"):
    return {"toolUseId": use, "status": status, "content": [{"text": text}]}


def end_of(messages, state=None):
    return {
        "messages": messages,
        "state": state or {},
        "logged": {"messages": messages, "state": state or {}, "open": False},
    }


def started(use):
    tool_use = {"toolUseId": use, "name": "pay", "input": {}}
    return Record("r", 0, "tool_started", {"tool_use": tool_use, "effect": "irreversible"}).to_dict()


def ended(use):
    return Record("r", 1, "tool_ended", {"id": use, "result": result(use)}).to_dict()


WHOLE = end_of(history(result("T1"), result("T2")))
UNKNOWN = "The tool call was interrupted: it may or may not have taken effect, and its outcome is unknown."
PAID = [crash.Happened(0, "pay", "T1", "r:T1", "irreversible"), crash.Happened(0, "pay", "T2", "r:T2", "irreversible")]
LOG = [started("T1"), ended("T1"), started("T2")]
GOOD = Case(crash.Scenario(), WHOLE, end_of(history(result("T1"), result("T2", UNKNOWN, "error"))), [LOG], PAID)


def test_an_outcome_that_nobody_knows_is_no_fault():
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"happened": [*PAID, replace(PAID[0], phase=1)]}, "had ended when process 1 was killed, and ran again"),
        ({"happened": [*PAID, replace(PAID[1], phase=1)]}, "ran again without a word"),
        ({"happened": [*PAID, replace(PAID[0], use="T3")]}, "the log does not know that it had started"),
        ({"happened": [*PAID, replace(PAID[1], key="r:T9")]}, "several idempotency keys: r:T2, r:T9"),
        ({"end": WHOLE}, "nobody can know what became of call 'T2'"),
        ({"end": end_of(history(result("T1")))}, "tool use 'T2' of message 1 has no result"),
        ({"end": end_of(GOOD.end["messages"][:-1])}, "3 messages, and 4 without a crash"),
        ({"end": end_of(history(result("T1", "other"), result("T2", UNKNOWN, "error")))}, "message 2 has"),
        ({"end": end_of(GOOD.end["messages"], {"None": {"a": 1}})}, "the state is"),
        ({"end": {**GOOD.end, "logged": {**GOOD.end["logged"], "open": True}}}, "ends in the middle of a run"),
        ({"end": {**GOOD.end, "logged": {**GOOD.end["logged"], "messages": []}}}, "adds up to other messages"),
    ],
)
def test_a_fault_is_told(change, told):
    assert told in "\n".join(problems(replace(GOOD, **change)))


def test_a_call_that_waits_for_an_answer_may_start_anew():
    paused = Record("r", 3, "run_suspended", {"unknown": {}}).to_dict()
    anew = replace(GOOD, end=WHOLE, logs=[[*LOG, paused]], happened=[PAID[0], replace(PAID[1], phase=1)])
    assert problems(anew) == []

    cut_off = Record("r", 3, "run_suspended", {"unknown": {"T2": 1}}).to_dict()
    assert "ran again without a word" in "\n".join(problems(replace(anew, logs=[[*LOG, cut_off]])))
    assert problems(replace(GOOD, logs=[[*LOG, cut_off]])) == []


def test_a_hook_that_acts_again_is_told():
    once = Record("r", 2, "once", {"key": "told", "value": None}).to_dict()
    again = [crash.Happened(phase, "told", "told:r", "r", "once") for phase in (0, 1)]
    case = replace(GOOD, logs=[[*LOG, once]], happened=[*PAID, *again])

    assert problems(case) == ["the effect 'told:r' of a hook was in the log after kill 1 and happened again"]
    assert problems(replace(case, logs=[LOG])) == []


def test_a_folded_log_knows_what_has_ended():
    messages = json.loads(json.dumps(WHOLE["messages"]))
    folded = Record("r", 9, "snapshot_loaded", {"messages": messages, "ids": [0, 1, 2, 3]}).to_dict()

    assert known_of([folded]).ended == {"T1", "T2"}
    assert known_of(LOG).started == {"T2": ("pay", "irreversible")}


# -- what it saves -------------------------------------------------------------------------------------------------


def test_what_a_child_has_imported_is_imported_once_for_all(tmp_path, monkeypatch):
    (tmp_path / "driver_17.py").write_text("loaded = True", encoding="utf-8")
    (tmp_path / "broken_17.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        preload(["json", "broken_17", "no_such_module_17", "driver_17"])
        assert sys.modules["driver_17"].loaded
        assert "broken_17" not in sys.modules
    finally:
        sys.modules.pop("driver_17", None)


async def test_the_log_is_read_once_before_a_run_goes_on(tmp_path):
    class Counting(LineStore):
        reads = 0

        def read(self, key):
            type(self).reads += 1
            return super().read(key)

    store = crash.KillingStore(Counting(tmp_path))
    manager = SessionManager("s", store)
    assert store.begun_with is None
    agent = SMALL.agent(manager, crash.EffectJournal(tmp_path / "effects"))
    assert store.begun_with == []
    await agent.invoke_async(SMALL.prompts[0])
    assert Counting.reads == 1
    assert store.begun_with == []
