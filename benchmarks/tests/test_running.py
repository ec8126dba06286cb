"""The outside: worker processes, rounds and the command line."""

from __future__ import annotations

import json
import sys

import pytest
from harness.environments import peer_named
from harness.plan import PLAN, Case, chosen
from harness.rounds import Bench
from harness.workers import Peer, Worker, time_import
from run import main


@pytest.fixture
def floor():
    return peer_named("floor")


def test_a_worker_answers_one_command_after_the_other(floor):
    with Worker(floor) as worker:
        assert worker.ask("information")["name"] == "floor"
        assert worker.ask("cycle", {"n": 2, "seconds": 0.0})["calls"] == 6


def test_a_worker_that_cannot_start_is_an_error_not_an_exception():
    with Worker(Peer("absent", "no_such_module", sys.executable)) as worker:
        assert "error" in worker.ask("information")


def test_an_import_is_counted_in_a_fresh_interpreter(floor):
    assert time_import(floor, "import colorsys")["modules"] == 1
    assert "ModuleNotFoundError" in time_import(floor, "import no_such_module")["error"]


def test_every_round_meets_every_peer(floor):
    case = Case("c", "cycle", "cycle", {"n": 1, "seconds": 0.0})
    again = Peer("again", floor.module, floor.python)
    with Bench([floor, again]) as bench:
        bench.run([case], 3)

    assert [len(bench.results.of("c", name)) for name in ("floor", "again")] == [3, 3]
    assert all(numbers["calls"] == 3 for numbers in bench.results.of("c", "floor"))


def test_a_peer_that_a_case_leaves_out_is_told_with_the_reason(floor):
    with Bench([floor]) as bench:
        bench.run([Case("c", "cycle", "cycle", without={"floor": "too slow"})], 1)

    assert bench.results.remark("c", "floor") == "skip: too slow"


def test_cases_are_chosen_by_group():
    assert {case.group for case in chosen(["cycle", "memory"])} == {"cycle", "memory"}
    with pytest.raises(ValueError, match="there is no case 'circle'"):
        chosen(["circle"])


def test_an_unknown_peer_is_refused_by_name():
    with pytest.raises(ValueError, match="there is no peer 'flor'"):
        peer_named("flor")


def test_quick_arguments_replace_the_others():
    case = next(case for case in PLAN if case.group == "concurrency")
    assert case.arguments_for(quick=True) == {"agents": 50}
    assert case.arguments_for(quick=False) == {}


def test_the_command_prints_tables_and_writes_every_round(tmp_path, capsys):
    out = tmp_path / "rounds.json"
    assert main(["--quick", "--cases", "memory", "--out", str(out)]) == 0
    assert "### Bars for Ropewalk" in capsys.readouterr().out
    rounds = json.loads(out.read_text(encoding="utf-8"))["rounds"]
    assert len(rounds["memory an agent, 1 tool"]["floor"]) == 1


def test_a_missed_bar_fails_the_check_only(monkeypatch, capsys):
    monkeypatch.setattr("run.all_kept", lambda _results: False)
    assert main(["--quick", "--peers", "floor", "--cases", "memory"]) == 0
    assert main(["--quick", "--peers", "floor", "--cases", "memory", "--check"]) == 1
    assert "memory an agent" in capsys.readouterr().out


def test_an_unknown_case_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--cases", "circle"])

    assert stopped.value.code == 2
    assert "there is no case 'circle'" in capsys.readouterr().err
