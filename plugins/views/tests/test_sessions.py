"""`ropewalk sessions`."""

from __future__ import annotations

import json

import pytest

from ropewalk import Agent
from ropewalk_testing import ScriptedModel, use


def log_file(kept, session="ada"):
    return kept.folder / session / "default" / "log.jsonl"


# -- list and show -------------------------------------------------------------------------------------------------


def test_sessions_are_listed_with_their_agents_and_their_size(ada):
    ada.talk("ada", "Hi.", agent_id="helper")
    result = ada.run("sessions", "list")

    head, first, second, _, total = result.stdout.splitlines()
    assert head.split() == ["SESSION", "AGENT", "SIZE", "CHANGED"]
    assert (first.split()[:2], second.split()[:2]) == (["ada", "default"], ["ada", "helper"])
    assert total.startswith("1 session, ")
    assert sum(each["size"] for each in ada.json("sessions", "list")) > 1000


def test_a_store_without_sessions_says_so(kept):
    result = kept.run("sessions", "list")

    assert (result.stdout, result.exit_code) == ("", 0)
    assert result.stderr.startswith("There are no sessions in FileLogStore(")


def test_an_id_cannot_pass_for_a_line_of_the_list(kept):
    kept.talk("x\nfake  default  1 B", "Hi.")

    lines = kept.run("sessions", "list").stdout.splitlines()
    assert lines[1].startswith("'x\\nfake  default  1 B'  default")


def test_a_conversation_is_shown(ada):
    result = ada.run("sessions", "show", "ada")

    assert result.stdout.splitlines() == [
        f"session 'ada', agent 'default': {len(ada.records('ada'))} records, 2 runs, ended: end_turn",
        "user: Add.",
        "assistant: I add.",
        'assistant calls: add {"a": 1, "b": 2}',
        "result (success): 3",
        "assistant: It is 3.",
        "user: Thanks.",
        "assistant: Bye.",
    ]


def test_state_is_shown_too_and_json_has_all(kept):
    kept.talk("s", "Hi.", state={"color": "blue"})

    assert 'state: color = "blue"' in kept.run("sessions", "show", "s").stdout.splitlines()
    told = kept.json("sessions", "show", "s")
    assert (told["state"], told["standing"], len(told["messages"])) == ({"color": "blue"}, "ended: end_turn", 2)


def test_a_conversation_is_shown_as_it_was_after_some_records(ada):
    whole = ada.json("sessions", "show", "ada")["messages"]
    counts = [len(ada.json("sessions", "show", f"ada@{n + 1}")["messages"]) for n in range(len(ada.records("ada")))]

    assert (counts[0], counts[-1]) == (0, len(whole))
    assert counts == sorted(counts)


@pytest.mark.parametrize("place", ["0", "-1", "9999", "x", "", "1.5", "٣"])
def test_a_place_that_the_log_does_not_have_is_wrong_usage(ada, place):
    result = ada.run("sessions", "show", f"ada@{place}")

    assert result.exit_code == 2
    assert "counts records from the beginning, from 1 to" in result.stderr


def test_an_id_may_have_the_mark_in_it(kept):
    kept.talk("me@home", "Hi.")

    assert "assistant: Hi." in kept.run("sessions", "show", "me@home").stdout
    assert kept.json("sessions", "show", "me@home@1")["records"] == 1


def test_what_a_model_says_cannot_steer_the_terminal_nor_pass_for_a_message(kept):
    kept.talk("s", "\x1b[2Jhi\nuser: Delete it.")

    lines = kept.run("sessions", "show", "s").stdout.splitlines()
    assert lines[-2:] == ["assistant: \N{REPLACEMENT CHARACTER}[2Jhi", "    user: Delete it."]


def test_several_agents_are_told_apart(ada):
    ada.talk("ada", "Hi.", agent_id="helper")

    result = ada.run("sessions", "show", "ada")
    assert result.exit_code == 2
    assert "give --agent-id, one of 'default', 'helper'" in result.stderr
    assert ada.json("sessions", "show", "ada", "--agent-id", "helper")["records"] > 0
    assert ada.run("sessions", "show", "ada", "--agent-id", "nobody").exit_code == 1


@pytest.mark.parametrize(
    "command",
    [("sessions", "show"), ("sessions", "verify"), ("sessions", "compact"), ("sessions", "delete", "-y"), ("trace",)],
)
def test_a_session_that_is_not_there_is_named(kept, command):
    result = kept.run(*command, "nobody")

    assert result.exit_code == 1
    assert "there is no session 'nobody' in FileLogStore(" in result.stderr
    assert "ropewalk sessions list shows" in result.stderr


# -- verify --------------------------------------------------------------------------------------------------------


def test_whole_logs_are_ok(ada):
    ada.talk("eve", "Hi.")
    result = ada.run("sessions", "verify")

    assert result.exit_code == 0
    assert [line.split()[:3] for line in result.stdout.splitlines()] == [
        ["ok", "session", "'ada',"],
        ["ok", "session", "'eve',"],
    ]


def test_a_damaged_log_is_told_of_and_left_as_it_is(ada):
    ada.talk("eve", "Hi.")
    file = log_file(ada)
    damaged = file.read_bytes().replace(b"Thanks.", b"Thanx!.")
    file.write_bytes(damaged)
    result = ada.run("sessions", "verify")

    assert result.exit_code == 1
    bad, problem, ok = result.stdout.splitlines()
    assert (bad[:3], ok[:2]) == ("bad", "ok")
    assert str(file) in problem
    assert file.read_bytes() == damaged


def test_a_log_that_cannot_be_read_at_all_does_not_hide_the_others(ada):
    ada.talk("eve", "Hi.")
    log_file(ada).write_bytes(b"nonsense\n" + log_file(ada).read_bytes())
    result = ada.run("sessions", "verify")

    assert result.exit_code == 1
    ok, bad = result.stdout.splitlines()
    assert ok.startswith("ok   session 'eve'")
    assert bad.startswith(f"bad  {log_file(ada)} is ignored")

    told = json.loads(ada.run("sessions", "verify", "ada", "--json").stdout)
    assert told["logs"][0]["problems"][0].startswith("SessionDamagedError: ")
    assert "SessionDamagedError" in ada.run("sessions", "show", "ada").stderr


# -- compact -------------------------------------------------------------------------------------------------------


def test_compacting_keeps_the_conversation_and_takes_less_room(ada):
    before = ada.json("sessions", "show", "ada")
    size = ada.store.logs("ada")[0].size
    result = ada.run("sessions", "compact", "ada")

    assert (result.exit_code, len(ada.records("ada"))) == (0, 1)
    assert ada.json("sessions", "show", "ada")["messages"] == before["messages"]
    assert ada.store.logs("ada")[0].size < size
    assert ada.talk("ada", "Still here.").messages[-1]["content"] == [{"text": "Still here."}]


def test_the_last_runs_can_be_kept_record_by_record(ada):
    assert ada.run("sessions", "compact", "ada", "--keep-last", "1").exit_code == 0

    kinds = [record.kind for record in ada.records("ada")]
    assert kinds[:2] == ["snapshot_loaded", "run_started"]
    assert kinds.count("run_started") == 1


@pytest.mark.parametrize("age", ["nan", "inf", "-1", "x"])
def test_an_age_that_is_none_is_wrong_usage(ada, age):
    result = ada.run("sessions", "compact", "ada", "--max-age", age)

    assert result.exit_code == 2
    assert "--max-age" in result.stderr
    assert len(ada.records("ada")) > 1


def test_one_record_and_one_run_are_not_many(ada):
    ada.run("sessions", "compact", "ada")
    ada.talk("eve", "Hi.")

    assert "agent 'default': 1 record, 0 runs, " in ada.run("sessions", "show", "ada").stdout
    assert ": 1 record, " in ada.run("sessions", "verify", "ada").stdout
    assert " records, 1 run, " in ada.run("sessions", "show", "eve").stdout
    assert ada.run("fork", "ada", "one").stdout.startswith("one: 1 record, 6 messages, ")


def test_a_run_that_broke_off_is_not_folded(ada):
    assert ada.run("fork", "ada@4", "open").exit_code == 0
    before = ada.records("open")
    result = ada.run("sessions", "compact", "open")

    assert result.exit_code == 1
    assert "was not compacted: the log ends in the middle of a run" in result.stderr
    assert ada.records("open") == before


def test_a_session_that_waits_for_an_answer_still_waits(kept):
    kept.talk("s", use("ask", {}, id="A"))
    assert kept.json("sessions", "show", "s")["standing"] == "waits for answers: sure"
    kept.run("sessions", "compact", "s")

    assert kept.json("sessions", "show", "s")["standing"] == "waits for answers: sure"


# -- delete --------------------------------------------------------------------------------------------------------


def test_sessions_are_deleted_when_that_is_confirmed(ada):
    ada.talk("eve", "Hi.")

    assert ada.run("sessions", "delete", "ada", stdin="n\n").exit_code == 1
    assert ada.store.logs("ada")
    assert ada.run("sessions", "delete", "ada", "eve", stdin="y\n").stdout == "ada is deleted\neve is deleted\n"
    assert ada.store.logs() == []


def test_a_session_that_is_named_twice_is_deleted_once(ada):
    assert ada.run("sessions", "delete", "-y", "ada", "ada").stdout == "ada is deleted\n"


def test_without_anybody_to_ask_it_is_said_how_to_delete(ada):
    result = ada.run("sessions", "delete", "ada")

    assert result.exit_code == 2
    assert "nobody is there to ask: give --yes" in result.stderr
    assert ada.store.logs("ada")


def test_nothing_is_deleted_when_one_is_not_there(ada):
    assert ada.run("sessions", "delete", "-y", "ada", "nobody").exit_code == 1
    assert ada.store.logs("ada")


# -- stores --------------------------------------------------------------------------------------------------------


def test_the_store_is_given_by_option_before_the_environment(ada, tmp_path):
    assert ada.run("sessions", "list", "--store", str(tmp_path / "other")).stdout == ""
    assert "ada" in ada.run("sessions", "list", "--store", f"file://{ada.folder}").stdout


def test_a_store_that_nobody_provides_is_one_clear_error(ada):
    result = ada.run("sessions", "list", "--store", "redis://user:secret@host")

    assert result.exit_code == 1
    assert "no installed plugin owns 'session.redis'" in result.stderr
    assert "secret" not in result.stderr


def test_the_plugin_takes_part_in_no_run():
    agent = Agent(model=ScriptedModel(["Hi."]), callback_handler=None, plugins=["views"])

    assert str(agent("Go.")) == "Hi.\n"
