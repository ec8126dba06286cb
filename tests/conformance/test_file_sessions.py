"""Sessions in files (conformance 68, 105, 127, 164, 166, 168, 170, 171)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from ropewalk import (
    Agent,
    ContextWindowOverflowException,
    FileSessionManager,
    HistoryEdit,
    SessionManager,
    SlidingWindowConversationManager,
    ToolContext,
    hookimpl,
    tool,
)
from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


@pytest.fixture
def in_session(make_agent, tmp_path):
    """Makes an agent with a session: `in_session(turns, "id", **parameters)` gives the agent and its model."""

    def make(turns, session="s", **parameters):
        return make_agent(turns, session_manager=FileSessionManager(session, tmp_path), **parameters)

    return make


@tool
def double(n: int) -> int:
    """Doubles."""
    return 2 * n


def test_a_sub_agent_with_a_session_of_its_own_must_keep_its_context(in_session):
    """Conformance 68."""
    inner, _ = in_session(["hello"], "inner", name="inner")
    with pytest.raises(ValueError, match="preserve_context=True"):
        inner.as_tool()

    inner.as_tool(preserve_context=True)


def test_an_interrupt_is_answered_in_a_new_agent(in_session):
    """Conformance 105."""
    deleted = []

    @tool(context=True)
    def delete(path: str, tool_context: ToolContext) -> str:
        """Deletes."""
        if tool_context.interrupt("approve", {"path": path}) != "yes":
            return "refused"

        deleted.append(path)
        return "deleted"

    agent, _ = in_session([[use("delete", {"path": "a"}), use("double", {"n": 4})]], tools=[delete, double])
    result = agent("Delete a.")
    assert result.stop_reason == "interrupt"

    again, model = in_session(["Done."], tools=[delete, double])
    assert again.messages == agent.messages
    answer = [{"interruptResponse": {"interruptId": result.interrupts[0].id, "response": "yes"}}]
    assert str(again(answer)) == "Done.\n"
    assert deleted == ["a"]
    assert model.calls == 1
    assert_valid_history(again.messages)
    third, _ = in_session(["x"])
    assert third.messages == again.messages


PROCESS = """
import json, sys
from ropewalk import Agent, FileSessionManager, tool
from ropewalk_testing import ScriptedModel

@tool
def double(n: int) -> int:
    "Doubles."
    print("ran", flush=True)
    return 2 * n

manager = FileSessionManager("s", sys.argv[1])
agent = Agent(model=ScriptedModel(["Eight."]), tools=[double], checkpointing=True, callback_handler=None,
              session_manager=manager)
results = [agent({"checkpointResume": {"checkpoint": json.loads(sys.argv[2])}})]
while results[-1].stop_reason == "checkpoint":
    results.append(agent({"checkpointResume": {"checkpoint": results[-1].checkpoint.to_dict()}}))
print(json.dumps([each.stop_reason for each in results]), str(results[-1]).strip(), len(agent.messages))
"""


def test_a_checkpoint_goes_on_in_a_new_process(in_session, tmp_path):
    """Conformance 127."""
    agent, _ = in_session([use("double", {"n": 4})], tools=[double], checkpointing=True)
    result = agent("Double four.")
    assert result.stop_reason == "checkpoint"

    arguments = [sys.executable, "-c", PROCESS, str(tmp_path), json.dumps(result.checkpoint.to_dict())]
    output = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=300).stdout
    assert output == 'ran\n["checkpoint", "end_turn"] Eight. 4\n'
    again, _ = in_session(["x"])
    assert_valid_history(again.messages)
    assert len(again.messages) == 4


class Shorten:
    """Drops what is old."""

    name = "shorten"

    @hookimpl
    async def manage_context(self, request, reason):
        if reason != "after_invocation" or len(request.ids) < 6:
            return None

        return [HistoryEdit(request.ids[0], request.ids[-5], (), "too long")]


def test_the_files_are_readable_and_the_history_is_as_it_was_in_memory(in_session, tmp_path):
    """Conformance 164."""
    turns = [use("double", {"n": 4}), "Eight."] * 4
    agent, _ = in_session(turns, tools=[double], plugins=[Shorten()])
    for number in range(4):
        agent(f"Double four, {number}. \U0001f642 Ä")

    assert len(agent.messages) < 16
    again, _ = in_session(["x"])
    assert again.messages == agent.messages
    assert_valid_history(again.messages)

    (log,) = tmp_path.rglob("*.jsonl")
    assert log == tmp_path / "s" / "default" / "log.jsonl"
    text = log.read_text(encoding="utf-8")
    assert "Double four, 3. \U0001f642 Ä" in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert (lines[0]["session"], lines[0]["agent"]) == ("s", "default")
    assert {"run_started", "message_appended", "tool_started", "tool_ended", "run_ended"} <= {
        line.get("kind") for line in lines
    }


def test_what_a_window_has_trimmed_and_shortened_is_restored_as_it_is(in_session):
    """Conformance 164 (B)."""

    @tool
    def look() -> str:
        """Looks."""
        return "x" * 5_000

    window = {"tools": [look], "conversation_manager": SlidingWindowConversationManager(8)}
    overflow = ContextWindowOverflowException("too long")
    agent, _ = in_session([*[use("look", {})] * 3, overflow, "seen", "more", "and more"], **window)
    for prompt, shortened, length in (("look", True, 8), ("more", False, 8), ("and more", False, 8)):
        agent(prompt)
        assert ("[truncated: 4600 chars removed]" in json.dumps(agent.messages)) is shortened
        assert len(agent.messages) == length
        again, _ = in_session(["x"], **window)
        assert again.messages == agent.messages
        assert_valid_history(again.messages)


def test_of_two_writers_one_gets_a_conflict_and_nothing_is_lost(in_session):
    """Conformance 166."""
    one, _ = in_session(["1", "3"])
    two, _ = in_session(["2"])
    one("from one")
    with pytest.raises(SessionConflictError):
        two("from two")

    one("one again")
    again, _ = in_session(["x"])
    assert again.messages == one.messages
    assert len(again.messages) == 4


def test_a_cut_file_opens_with_what_is_whole_and_names_the_file(in_session, tmp_path, caplog):
    """Conformance 168."""
    agent, _ = in_session(["1", "2"])
    agent("one")
    agent("two")
    log = tmp_path / "s" / "default" / "log.jsonl"
    data = log.read_bytes()
    log.write_bytes(data[: data.index(b"run_ended") + 30])

    caplog.clear()
    again, _ = in_session(["3"])
    assert str(log) in caplog.text
    assert again.messages == agent.messages[: len(again.messages)]
    again("three")
    assert_valid_history(again.messages)


def test_a_file_that_says_nothing_any_more_is_an_error_that_names_it(in_session, tmp_path):
    """Conformance 168."""
    agent, _ = in_session(["1"])
    agent("one")
    log = tmp_path / "s" / "default" / "log.jsonl"
    log.write_bytes(b"{}\n" + log.read_bytes())
    damaged = log.read_bytes()

    with pytest.raises(SessionException) as raised:
        in_session(["2"])

    assert str(log) in str(raised.value)
    assert log.read_bytes() == damaged


KILLED = """
import os, signal, sys
from ropewalk import Agent, FileSessionManager, SequentialToolExecutor, tool
from ropewalk_testing import ScriptedModel, use

@tool
def pay(amount: int) -> str:
    "Pays."
    print("paid", flush=True)
    if amount == 2:
        os.kill(os.getpid(), signal.SIGKILL)

    return f"paid {amount}"

calls = [use("pay", {"amount": 1}, id="T1"), use("pay", {"amount": 2}, id="T2")]
agent = Agent(model=ScriptedModel([calls]), tools=[pay], tool_executor=SequentialToolExecutor(), callback_handler=None,
              session_manager=FileSessionManager("s", sys.argv[1]))
agent("Pay twice.")
"""


@pytest.mark.parametrize("prompt", [None, "Go on.", [{"text": "Go on."}]], ids=["none", "text", "blocks"])
def test_a_call_that_was_killed_is_closed_by_the_next_run(in_session, tmp_path, tool_results, result_text, prompt):
    """Conformance 170."""
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    killed = subprocess.run(command, check=False, capture_output=True, timeout=300)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, b"paid\npaid\n")
    ran = []

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        ran.append(amount)
        return f"paid {amount}"

    agent, model = in_session(["I see."], tools=[pay])
    assert str(agent(prompt)) == "I see.\n"
    assert ran == []
    one, two = tool_results(agent.messages)
    assert (one["toolUseId"], one["status"], result_text(one)) == ("T1", "success", "paid 1")
    assert (two["toolUseId"], two["status"]) == ("T2", "error")
    assert "unknown" in result_text(two)
    assert_valid_history(model.requests[0].messages)
    again, _ = in_session(["x"])
    assert again.messages == agent.messages


@pytest.mark.parametrize("given", ["../x", "a/b", "..", "/etc/x"])
def test_ids_with_separators_stay_inside_the_folder(make_agent, tmp_path, given):
    """Conformance 171: the agent refuses them, and a session gets a name without."""
    root = tmp_path / "deep" / "root"
    with pytest.raises(ValueError, match="agent_id"):
        make_agent(["1"], agent_id=given, session_manager=FileSessionManager("s", root))

    agent, _ = make_agent(["1"], session_manager=FileSessionManager(given, root))
    agent("one")
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["root"]
    (inside,) = root.iterdir()
    assert [path.name for path in inside.iterdir()] == ["default"]


@pytest.mark.parametrize("where", ["session", "agent", "log", "lock"])
def test_links_are_refused(in_session, tmp_path, where):
    """Conformance 171."""
    agent, _ = in_session(["1"], "other")
    agent("one")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes((tmp_path / "other" / "default" / "log.jsonl").read_bytes())
    before = (elsewhere / "file").read_bytes()
    session = tmp_path / "s"
    if where != "session":
        session.mkdir()

    folder = session / "default"
    if where in ("log", "lock"):
        folder.mkdir()

    link = {"session": session, "agent": folder, "log": folder / "log.jsonl", "lock": folder / "lock"}[where]
    link.symlink_to(elsewhere / "file" if where in ("log", "lock") else elsewhere)
    with pytest.raises(SessionException, match="links are not followed"):
        in_session(["1"])[0]("one")

    assert (elsewhere / "file").read_bytes() == before
    assert [path.name for path in elsewhere.iterdir()] == ["file"]


def test_the_folder_itself_may_be_a_link(make_agent, tmp_path):
    """Conformance 171: where sessions are kept is the user's choice."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    agent, _ = make_agent(["1"], session_manager=FileSessionManager("s", tmp_path / "link"))
    agent("one")
    assert (tmp_path / "real" / "s" / "default" / "log.jsonl").is_file()


def test_a_redaction_leaves_no_byte_of_what_it_erased(in_session, tmp_path, make_agent):
    """The canary: the log, what was set aside of it, and what was left by a process that ended."""
    canary = "my secret number is 4711"
    events = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "No."}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "guardrail_intervened"}},
        {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}},
        {"redactContent": {"redactUserContentMessage": "[redacted]"}},
    ]
    first, _ = in_session(["kept answer", "torn answer"])
    first("kept question")
    first(canary)
    log = tmp_path / "s" / "default" / "log.jsonl"
    data = log.read_bytes()
    log.write_bytes(data[: data.index(canary.encode()) + 60])

    agent, _ = in_session([turn(raw=events), "fine"])
    agent(canary)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("set-aside") for path in files)
    assert [path for path in files if canary.encode() in path.read_bytes() or b"4711" in path.read_bytes()] == []

    again, model = in_session(["ok"])
    assert again.messages == agent.messages
    assert again.messages[0]["content"] == [{"text": "kept question"}]
    assert "[redacted]" in json.dumps(again.messages)
    again("more")
    assert "4711" not in json.dumps(model.requests[0].messages)


def test_a_session_manager_is_what_it_says(tmp_path):
    assert issubclass(FileSessionManager, SessionManager)
    agent = Agent(model=ScriptedModel(["x"]), session_manager=FileSessionManager("s", storage_dir=str(tmp_path)))
    assert isinstance(agent.session_manager, SessionManager)
    assert list(tmp_path.iterdir()) == []


def test_state_that_was_changed_after_the_last_run_is_there_when_the_agent_was_closed(tmp_path):
    def opened():
        manager = FileSessionManager("s", tmp_path)
        return Agent(model=ScriptedModel(["hi"]), session_manager=manager, callback_handler=None)

    with opened() as agent:
        agent("go")
        agent.state.set("seen", 3)
        agent.plugin_state("mine").set("key", [1])

    again = opened()
    assert (again.state.get("seen"), again.plugin_state("mine").get("key")) == (3, [1])
    assert len(again.messages) == 2
