"""`ropewalk fork`."""

from __future__ import annotations

import pytest


def place_of(kept, kind, session="ada"):
    return next(n for n, record in enumerate(kept.records(session), 1) if record.kind == kind)


def test_a_fork_goes_on_from_where_it_was_made(ada):
    result = ada.run("fork", f"ada@{place_of(ada, 'run_ended')}", "eve")
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "eve")
    before = ada.records("ada")
    agent = ada.talk("eve", "No problem.", prompt="Thanks!")

    assert [m["content"][0].get("text") for m in agent.messages] == [
        "Add.", "I add.", None, "It is 3.", "Thanks!", "No problem.",
    ]  # fmt: skip
    assert ada.records("ada") == before


def test_without_a_place_all_of_it_is_copied(ada):
    ada.run("fork", "ada")

    assert ada.records("ada-fork") == ada.records("ada")


def test_forks_without_a_name_do_not_meet(ada):
    assert [ada.run("fork", "ada@5").stdout.split(":")[0] for _ in range(3)] == ["ada-at-5", "ada-at-5-2", "ada-at-5-3"]


def test_a_session_that_exists_is_not_written_over(ada):
    ada.talk("eve", "Hi.")
    before = ada.records("eve")
    result = ada.run("fork", "ada@5", "eve")

    assert result.exit_code == 1
    assert "there is a session 'eve' already" in result.stderr
    assert ada.records("eve") == before


def test_an_open_run_is_broken_off_in_the_fork_and_can_be_gone_on_with(ada):
    ended = place_of(ada, "tool_ended")
    result = ada.run("fork", f"ada@{ended}", "eve")
    assert result.stdout == f"eve: {ended} records, 2 messages, broken off\n"

    ada.ran.clear()
    agent = ada.talk("eve", "Three.", prompt=None)

    assert agent.messages[-1]["content"] == [{"text": "Three."}]
    assert ada.ran == []  # it had finished


def test_a_new_prompt_closes_the_open_run(ada):
    ada.run("fork", f"ada@{place_of(ada, 'tool_started')}", "eve")
    agent = ada.talk("eve", "Never mind.", prompt="Something else.")

    result = agent.messages[2]["content"][0]["toolResult"]
    assert (result["status"], agent.messages[-1]["content"]) == ("error", [{"text": "Never mind."}])


@pytest.mark.parametrize("prompt", ["Go.", None])
def test_every_place_gives_a_session_that_can_be_used(ada, prompt):
    for number in range(1 if prompt else place_of(ada, "message_appended"), len(ada.records("ada")) + 1):
        result = ada.run("fork", f"ada@{number}", f"f{number}")
        assert result.exit_code == 0, result.stderr
        agent = ada.talk(f"f{number}", "Done.", prompt=prompt)
        assert agent.messages[-1]["role"] == "assistant"


def test_a_run_that_has_only_begun_is_left_out(ada):
    starts = [n for n, record in enumerate(ada.records("ada"), 1) if record.kind == "run_started"]
    result = ada.run("fork", f"ada@{starts[1]}", "eve")

    assert result.stdout == f"eve: {starts[1] - 1} records, 4 messages, ended: end_turn\n"


def test_a_fork_may_go_to_another_store(ada, tmp_path):
    other = str(tmp_path / "other")
    assert ada.run("fork", "ada", "ada", "--to-store", other).exit_code == 0

    assert "assistant: Bye." in ada.run("sessions", "show", "ada", "--store", other).stdout


@pytest.mark.parametrize("name", ["", " "])
def test_a_fork_needs_a_name_that_an_agent_can_have(ada, name):
    result = ada.run("fork", "ada", name)

    assert result.exit_code == 2
    assert "not blank" in result.stderr
    assert {info.key.session_id for info in ada.store.logs()} == {"ada"}
