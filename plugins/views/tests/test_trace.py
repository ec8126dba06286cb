"""`ropewalk trace`."""

from __future__ import annotations

import asyncio
import re

import pytest

from ropewalk import hookimpl
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import LogKey
from ropewalk_testing import turn, use
from ropewalk_views.timeline import runs_of


def texts(run):
    return [event.text for event in run.events]


def test_a_run_is_told_in_order_with_tools_and_tokens(ada):
    head, *lines = ada.run("trace", "ada:1").stdout.splitlines()

    assert re.fullmatch(
        r"run 1  run_\w+  \d{4}-\d\d-\d\d [\d:]{8} UTC  \d+\.\d{3} s  end_turn  17 tokens in, 8 out", head
    )
    known = [re.sub(r"\d+\.\d{3} s", "T", re.sub(r"^ *\d+ +\+[\d.]+  ", "", line)) for line in lines]
    assert known == [
        "snapshot: 0 messages",
        "begins",
        "user: Add.",
        "model, turn 1: tool_use  [T, 10 tokens in, 5 out]",
        'assistant: I add.; assistant calls: add {"a": 1, "b": 2}',
        'tool add {"a": 1, "b": 2} [irreversible]: success: 3  [T]',
        "results of add",
        "model, turn 2: end_turn  [T, 7 tokens in, 3 out]",
        "assistant: It is 3.",
        "ends: end_turn",
    ]


@pytest.mark.parametrize(("wanted", "number"), [("1", 1), ("2", 2), ("-1", 2), ("-2", 1)])
def test_a_run_is_named_by_number(ada, wanted, number):
    assert [run["number"] for run in ada.json("trace", f"ada:{wanted}")] == [number]


def test_a_run_is_named_by_the_beginning_of_its_id(ada):
    run = ada.records("ada")[0].run

    assert [each["run"] for each in ada.json("trace", f"ada:{run[:12]}")] == [run]


@pytest.mark.parametrize("wanted", ["3", "0", "-3", "run_", "x", ""])
def test_a_run_that_is_not_there_is_wrong_usage(ada, wanted):
    result = ada.run("trace", f"ada:{wanted}")

    assert result.exit_code == 2
    assert "its last runs are 1 (run_" in result.stderr


def test_the_numbers_are_those_of_forks(ada):
    [run] = ada.json("trace", "ada:1")
    answer = next(event for event in run["events"] if event["text"] == "assistant: It is 3.")
    ada.run("fork", f"ada@{answer['record']}", "new")

    assert ada.json("sessions", "show", "new")["messages"][-1]["content"] == [{"text": "It is 3."}]


def test_pauses_and_answers_are_told(kept):
    agent = kept.talk("s", use("ask", {}, id="A"), "Fine.")
    [run] = kept.json("trace", "s")
    assert (run["stopped"], run["events"][-1]["text"]) == ("paused", "pauses for answers: sure")

    asked = agent.suspension.interrupts[0].id
    agent([{"interruptResponse": {"interruptId": asked, "response": "yes"}}])
    [run] = kept.json("trace", "s")
    assert run["stopped"] == "end_turn"
    assert any(event["text"].startswith("goes on with answers") for event in run["events"])


class Forgetful:
    name = "forgetful"

    @hookimpl
    async def around_invocation(self, invocation, call_next, agent):
        agent.plugin_state("forgetful").set("calls", 1)
        return await call_next(invocation)

    @hookimpl
    async def decide_retry(self, failure, agent):
        return 0.0


def test_it_is_told_which_plugin_changed_what(kept):
    kept.talk("s", turn("Hal", error=ConnectionError("gone")), "Hello.", plugins=[Forgetful()], retry_strategy=None)
    [run] = kept.json("trace", "s")
    told = [event["text"] for event in run["events"]]

    assert "state of forgetful: calls = 1" in told
    assert any(text.startswith("attempt 1 of turn 1 is discarded: ") for text in told)
    assert "model, turn 1, attempt 2: end_turn" in told


def test_a_change_of_the_history_names_its_plugin_and_reason():
    data = {"at": 0, "gone": 3, "ids": [9], "messages": [{"role": "user", "content": []}], "plugin": "summarize"}
    started = Record("r", 0, "run_started", {}, 1.0)
    [run] = runs_of([started, Record("r", 1, "history_spliced", {**data, "reason": "overflow"}, 2.0)])

    assert texts(run)[-1] == "summarize changes the history (overflow): 3 messages go, 1 come, from message 1 on"
    assert run.stopped == "broken off"


def test_what_did_not_end_is_told_so():
    use_of = {"toolUseId": "A", "name": "pay", "input": {"n": 1}}
    [run] = runs_of(
        [
            Record("r", 0, "run_started", {}, 5.0),
            Record("r", 1, "tool_started", {"tool_use": use_of, "effect": "irreversible", "attempt": 1}, 6.0),
        ]
    )

    assert texts(run)[-1] == 'tool pay {"n": 1} [irreversible]: no end'
    assert run.events[-1].took is None


def test_sub_agents_are_set_in_and_do_not_end_the_run():
    [run] = runs_of(
        [
            Record("r", 0, "run_started", {}, 1.0),
            Record("c", 0, "run_started", {}, 2.0, ("A",)),
            Record("c", 1, "run_ended", {"stop_reason": "end_turn"}, 3.0, ("A",)),
        ]
    )

    assert [(len(event.path), event.text) for event in run.events] == [
        (0, "begins"),
        (1, "sub-agent of A begins"),
        (1, "ends: end_turn"),
    ]
    assert run.stopped == "broken off"


def test_sub_agents_at_the_same_time_are_told_apart(kept):
    key = LogKey("s", "default")
    uses = [{"toolUse": {"toolUseId": f"use-{each}", "name": "helper", "input": {}}} for each in "AB"]
    records = [
        Record("r", 0, "run_started", {}, 1.0),
        Record("r", 1, "message_appended", {"id": 0, "message": {"role": "assistant", "content": uses}}, 1.0),
        Record("a", 0, "run_started", {}, 2.0, ("use-A",)),
        Record("b", 0, "run_started", {}, 2.0, ("use-B",)),
    ]
    asyncio.run(kept.store.append(key, records, 0))

    lines = kept.run("trace", "s").stdout.splitlines()
    assert [line.partition("+1.000  ")[2] for line in lines[-2:]] == [
        "  [use-A] sub-agent of helper begins",
        "  [use-B] sub-agent of helper begins",
    ]


def test_a_clock_that_went_backwards_gives_no_negative_times():
    [run] = runs_of([Record("r", 0, "run_started", {}, 9.0), Record("r", 1, "run_ended", {"stop_reason": "x"}, 1.0)])

    assert (run.seconds, run.events[-1].at) == (0.0, 0.0)


def test_what_was_folded_comes_before_the_runs(ada):
    ada.run("sessions", "compact", "ada", "--keep-last", "1")

    before, run = ada.json("trace", "ada")
    assert (before["number"], before["stopped"], run["number"]) == (0, "folded", 1)
    assert ada.run("trace", "ada").stdout.startswith("before  ")
