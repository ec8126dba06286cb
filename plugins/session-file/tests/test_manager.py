from __future__ import annotations

import asyncio
import errno
import gc
import json

import pytest

from ropewalk import Agent, FileSessionManager, HistoryEdit, SessionManager, hookimpl
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk.kits.sessions import SessionException
from ropewalk_session_file import files, held, lock
from ropewalk_session_file.store import FileLogStore
from ropewalk_testing import ScriptedModel, assert_valid_history


def test_an_agent_goes_on_where_the_session_ended(make_agent):
    first = make_agent("one", "two")
    first("1")
    first.state.set("k", {"deep": [1, None]})
    first.plugin_state("session-file").set("mine", True)
    first("2")
    second = make_agent("three", messages=[{"role": "user", "content": [{"text": "dropped"}]}])

    assert second.messages == first.messages
    assert second.state.get() == {"k": {"deep": [1, None]}}
    assert second.plugin_state("session-file").get() == {"mine": True}
    second("3")
    assert make_agent().messages == second.messages
    assert_valid_history(second.messages)


def test_an_agent_keeps_what_it_was_made_with_when_the_session_is_new(make_agent):
    made_with = [{"role": "user", "content": [{"text": "a"}]}, {"role": "assistant", "content": [{"text": "b"}]}]
    agent = make_agent("c", messages=made_with)
    agent("next")

    assert make_agent().messages[:2] == made_with
    assert len(make_agent().messages) == 4


def test_agents_of_one_session_have_logs_of_their_own(tmp_path):
    manager = FileSessionManager("s", tmp_path)
    one, two = (
        Agent(model=ScriptedModel([name]), agent_id=name, callback_handler=None, session_manager=manager)
        for name in ("one", "two")
    )
    one("1")
    two("2")

    assert [info.key.agent_id for info in manager.store.logs("s")] == ["one", "two"]
    with pytest.raises(SessionException, match="give each agent of a session its own agent_id"):
        Agent(agent_id="one", callback_handler=None, session_manager=manager)

    one.close()
    again = Agent(agent_id="one", callback_handler=None, session_manager=manager)
    assert again.messages == one.messages


@pytest.mark.parametrize("wrong", ["", "  ", "\n", None, 7])
def test_an_id_that_is_no_id_is_refused(tmp_path, wrong):
    with pytest.raises(SessionException, match="give a text that is not blank"):
        FileSessionManager(wrong, tmp_path)


def test_it_is_the_session_manager_of_the_agent(make_agent):
    agent = make_agent()
    assert isinstance(agent.session_manager, SessionManager)
    assert repr(agent.session_manager).startswith("FileSessionManager('s', FileLogStore(")


# -- what retention keeps ------------------------------------------------------------------------------------------


def kinds(manager, agent_id="default"):
    log = manager.store._place(next(i.key for i in manager.store.logs() if i.key.agent_id == agent_id)).log
    return [json.loads(line).get("kind", "head") for line in log.read_text().splitlines()]


def test_the_latest_state_alone_can_be_kept(make_agent):
    agent = make_agent("one", "two", options={"compact_to_latest": True})
    agent("1")
    assert kinds(agent.session_manager) == ["head", "snapshot_loaded"]
    agent("2")
    again = make_agent("three")

    assert again.messages == agent.messages
    again("3")
    assert make_agent().messages == again.messages


def test_the_last_runs_can_be_kept(make_agent):
    agent = make_agent(*"abcdefgh", options={"keep_last": 2})
    for number in range(8):
        agent(str(number))

    starts = kinds(agent.session_manager).count("run_started")
    assert 2 <= starts <= 5
    assert make_agent().messages == agent.messages
    again = make_agent("i", options={"keep_last": 2})
    again("8")
    assert kinds(agent.session_manager).count("run_started") == 2
    assert make_agent().messages == again.messages


@pytest.mark.usefixtures("no_plugins_env")  # nobody makes the conversation shorter
def test_folding_happens_the_less_often_the_longer_the_log_is(make_agent, monkeypatch):
    reads, replaced = [], []
    real_read, real_replace = FileLogStore.read, FileLogStore.replace

    def read(self, key):
        found = real_read(self, key)
        reads.append(0 if found is None else len(found.records))
        return found

    async def replace(self, key, records, position):
        replaced.append(len(records))
        return await real_replace(self, key, records, position)

    monkeypatch.setattr(FileLogStore, "read", read)
    monkeypatch.setattr(FileLogStore, "replace", replace)
    agent = make_agent(*["x"] * 256, options={"compact_to_latest": True})
    for number in range(256):
        agent(str(number))

    assert len(replaced) <= 24
    assert sum(reads) <= 5 * 256 * 6, "what is read in all grows with what was written"
    monkeypatch.undo()
    assert make_agent().messages == agent.messages


def test_what_is_too_old_is_folded(make_agent):
    old = make_agent("a", "b")
    old("1")
    old("2")
    agent = make_agent("c", options={"max_age": 0.0})
    agent("3")

    assert kinds(agent.session_manager) == ["head", "snapshot_loaded"]
    assert make_agent().messages == agent.messages


async def test_a_session_can_be_compacted_between_runs(make_agent):
    agent = make_agent("one", "two", "three")
    await agent.invoke_async("1")
    await agent.invoke_async("2")
    before = agent.session_manager.size()
    await agent.session_manager.compact(agent)

    assert agent.session_manager.size() < before
    assert kinds(agent.session_manager) == ["head", "snapshot_loaded"]
    await agent.invoke_async("3")
    assert make_agent().messages == agent.messages


@pytest.mark.parametrize("options", [{"keep_last": -1}, {"keep_last": 1.5}, {"max_age": -1}, {"max_age": float("inf")}])
def test_retention_that_makes_no_sense_is_refused(make_agent, options):
    with pytest.raises(ValueError, match="give"):
        make_agent(options=options)


# -- growth --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_plugins_env")
def test_a_turn_writes_as_much_and_calls_the_system_as_often_late_as_early(make_agent, monkeypatch, tmp_path):
    calls, sizes = [], []
    for module in (files, held, lock):
        for name in ("open", "write", "fstat", "lstat", "close", "read", "lseek"):
            real = getattr(module.os, name)
            if not hasattr(real, "counted"):

                def counted(*arguments, real=real, name=name, **options):
                    calls.append(name)
                    return real(*arguments, **options)

                counted.counted = True
                monkeypatch.setattr(module.os, name, counted)

    agent = make_agent(lambda request: "an answer of some length")
    per_turn, log = [], tmp_path / "sessions" / "s" / "default" / "log.jsonl"
    for number in range(1000, 1200):
        calls.clear()
        before = log.stat().st_size if log.exists() else 0
        agent(f"question {number}")
        per_turn.append(tuple(calls))
        sizes.append(log.stat().st_size - before)

    assert len(set(per_turn[1:])) == 1, "the same calls in every turn but the first"
    assert per_turn[-1].count("write") == 3, "one a commit"
    assert len(per_turn[-1]) < 20
    assert max(sizes[1:]) - min(sizes[1:]) < 30


# -- what others leave ---------------------------------------------------------------------------------------------


def test_state_of_plugins_that_are_not_there_is_kept_and_named(make_agent, caplog):
    agent = make_agent("one")
    agent.plugin_state("memory").set("k", 1)
    agent.plugin_state("somebody-elses").set("k", 2)
    agent("1")
    caplog.clear()
    again = make_agent("two")

    assert "plugin 'memory', which the agent does not have: it is kept; to use it: pip install ropewalk-memory" in (
        caplog.text
    )
    assert "state of 'somebody-elses', which is no plugin of the agent" in caplog.text
    again("2")
    assert make_agent().plugin_state("memory").get() == {"k": 1}
    assert make_agent().plugin_state("somebody-elses").get() == {"k": 2}


def test_what_context_plugins_did_to_the_history_survives(make_agent):
    class Trimmer:
        name = "trimmer"

        @hookimpl
        async def manage_context(self, request, reason):
            if reason == "after_invocation" and len(request.ids) > 2:
                summary = {"role": "user", "content": [{"text": "summary"}]}
                return [HistoryEdit(request.ids[0], request.ids[-2], (summary,), "too long")]

            return None

    agent = make_agent("one", "two", "three", plugins=[Trimmer()])
    for number in range(3):
        agent(str(number))

    assert agent.messages[0]["content"] == [{"text": "summary"}]
    assert make_agent().messages == agent.messages


def test_damage_is_told_when_the_session_is_opened(make_agent, tmp_path, caplog):
    make_agent("one")("1")
    log = tmp_path / "sessions" / "s" / "default" / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-5])
    caplog.clear()
    agent = make_agent("two")

    assert f"{log}: " in caplog.text
    assert "cut off" in caplog.text
    agent("2")
    assert_valid_history(agent.messages)
    assert make_agent().messages == agent.messages


def test_an_agent_that_is_dropped_in_the_middle_of_a_run_holds_nothing(make_agent):
    async def abandon(agent):
        stream = agent.stream_async("1")
        await anext(stream)
        await stream.aclose()

    asyncio.run(abandon(make_agent("one", "two")))
    gc.collect()
    again = make_agent("three")
    again("2")
    assert_valid_history(again.messages)


def test_a_clock_that_goes_back_does_no_harm(make_agent):
    class Backwards(Seam):
        now = 2_000_000_000.0

        def time(self):
            Backwards.now -= 1000
            return Backwards.now

    with use_seam(Backwards()):
        agent = make_agent("a", "b", "c", options={"max_age": 5000})
        for number in range(3):
            agent(str(number))

    assert make_agent().messages == agent.messages


def test_a_failed_write_ends_the_run_frees_the_session_and_is_made_up_for(make_agent, monkeypatch):
    agent = make_agent("one", "two", "three")
    agent("1")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "write", full)
    with pytest.raises(SessionException, match="free some space"):
        agent("2")

    monkeypatch.undo()
    assert len(make_agent().messages) == 2
    agent("3")
    assert_valid_history(agent.messages)
    assert make_agent().messages == agent.messages


def test_of_two_agents_that_are_built_at_once_under_one_id_one_is_refused(tmp_path, monkeypatch):
    manager, second = FileSessionManager("s", tmp_path), []
    inner = manager.store.read

    def read(key):
        if not second:
            second.append("is being built")
            with pytest.raises(SessionException, match="has an agent 'default' already"):
                Agent(ScriptedModel([]), session_manager=manager)

        return inner(key)

    monkeypatch.setattr(manager.store, "read", read)
    Agent(ScriptedModel([]), session_manager=manager)


def test_an_agent_whose_log_could_not_be_read_does_not_keep_its_id(tmp_path, monkeypatch):
    manager = FileSessionManager("s", tmp_path)

    def fail(key):
        raise SessionException("the disk is away")

    monkeypatch.setattr(manager.store, "read", fail)
    with pytest.raises(SessionException, match="away") as kept:
        Agent(ScriptedModel([]), session_manager=manager)

    monkeypatch.undo()
    Agent(ScriptedModel([]), session_manager=manager)
    assert kept.value
