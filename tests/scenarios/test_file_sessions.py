"""Sessions in files (scenarios A9, A11, A12, A13, A14, A15)."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
import uuid
from decimal import Decimal

import pytest

from ropewalk import FileSessionManager, Record, tool
from ropewalk.kits.sessions import LogKey, SessionConflictError, SessionException
from ropewalk_session_file import FileLogStore
from ropewalk_testing import assert_valid_history, turn, use


@pytest.fixture
def in_session(make_agent, tmp_path):
    """Makes an agent with a session: `in_session(turns, "id", **parameters)` gives the agent and its model."""

    def make(turns, session="s", **parameters):
        return make_agent(turns, session_manager=FileSessionManager(session, tmp_path), **parameters)

    return make


@pytest.fixture
def log(tmp_path):
    return tmp_path / "s" / "default" / "log.jsonl"


# -- A9 ------------------------------------------------------------------------------------------------------------

USES = [use("t", {}, id="T1"), use("t", {}, id="T2")]


@tool
def t() -> str:
    """Works."""
    return "done"


def cut_before(log, kind, number=1):
    """Ends the log before its n-th record of a kind, as a process does that is killed there."""
    lines = log.read_bytes().splitlines(keepends=True)
    places = [at for at, line in enumerate(lines) if json.loads(line).get("kind") == kind]
    end = places[number - 1]
    while json.loads(lines[end - 1])["left"] > 0:
        end -= 1

    log.write_bytes(b"".join(lines[:end]))


@pytest.mark.parametrize(
    "prompt",
    [None, "continue", [{"text": "continue"}], [{"role": "user", "content": [{"text": "continue"}]}]],
    ids=["none", "text", "blocks", "messages"],
)
@pytest.mark.parametrize("killed", [("tool_started", 1), ("tool_ended", 1), ("tool_ended", 2), ("model_started", 3)])
def test_a_call_that_no_result_was_stored_for_gets_one_on_every_way(in_session, log, prompt, killed):
    """Scenario A9."""
    agent, _ = in_session(["Hello.", USES, "Done."], tools=[t])
    agent("hi")
    agent("work")
    cut_before(log, *killed)

    again, model = in_session(["I see."], tools=[t])
    assert again.messages[:2] == agent.messages[:2]
    again(prompt)
    assert_valid_history(model.requests[0].messages)
    results = [block["toolResult"]["toolUseId"] for block in again.messages[4]["content"] if "toolResult" in block]
    assert results == ["T1", "T2"]
    third, _ = in_session(["x"])
    assert third.messages == again.messages


# -- A11 -----------------------------------------------------------------------------------------------------------


def test_a_log_cut_in_half_opens_with_its_first_half(in_session, log, tmp_path, caplog):
    """Scenario A11."""
    agent, _ = in_session(["1", "2"])
    agent("one")
    agent("two")
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2 + 11])
    half = log.read_bytes()

    caplog.clear()
    again, _ = in_session(["3"])
    assert str(log) in caplog.text
    assert again.messages[:2] == agent.messages[:2]
    assert log.read_bytes() == half
    again("three")
    assert_valid_history(again.messages)
    (aside,) = log.parent.glob("set-aside-*")
    assert half.endswith(aside.read_bytes())
    assert log.read_bytes().startswith(half[: -len(aside.read_bytes())])


def test_an_empty_log_opens_and_is_named(in_session, log, caplog):
    """Scenario A11."""
    agent, _ = in_session(["1"])
    agent("one")
    log.write_bytes(b"")

    caplog.clear()
    again, _ = in_session(["2"])
    assert again.messages == []
    assert f"{log} is empty" in caplog.text
    again("two")
    assert in_session(["x"])[0].messages == again.messages


def test_stray_files_block_nothing_and_are_named(in_session, log, caplog):
    """Scenario A11."""
    agent, _ = in_session(["1"])
    agent("one")
    (log.parent / "log (1).jsonl").write_bytes(log.read_bytes())
    (log.parent / ".log.jsonl.swp").write_bytes(b"\x00\x01")
    (log.parent / "folder").mkdir(mode=0)

    caplog.clear()
    again, _ = in_session(["2"])
    assert again.messages == agent.messages
    for name in ("log (1).jsonl", ".log.jsonl.swp", "folder"):
        assert name in caplog.text

    again("two")
    assert len(list(log.parent.iterdir())) == 5, "nothing of it was touched"


# -- A12 -----------------------------------------------------------------------------------------------------------


def test_two_agents_on_one_session_never_lose_a_turn_in_silence(in_session):
    """Scenario A12."""
    x, _ = in_session(["to x", "to x again"])
    y, _ = in_session(["to y"])
    x("from x")
    with pytest.raises(SessionConflictError):
        y("from y")

    x("x again")
    again, _ = in_session(["x"])
    assert again.messages == x.messages


def test_an_agent_that_runs_keeps_others_out(in_session):
    """Scenario A12."""
    other, _ = in_session(["to y"])
    refused = []

    @tool
    def meanwhile() -> str:
        """Lets the other agent try."""
        try:
            other("from y")
        except SessionConflictError as error:
            refused.append(str(error))

        return "tried"

    agent, _ = in_session([use("meanwhile", {}), "done"], tools=[meanwhile])
    agent("go")
    (message,) = refused
    assert "in use by another agent" in message
    assert in_session(["x"])[0].messages == agent.messages


WRITER = """
import sys
from ropewalk import Agent, FileSessionManager
from ropewalk.kits.sessions import SessionConflictError
from ropewalk_testing import ScriptedModel

folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
written = conflicts = 0

def opened():
    return Agent(model=ScriptedModel(lambda request: "yes"), callback_handler=None, plugins=["-window"],
                 session_manager=FileSessionManager("s", folder))

agent = opened()
print("ready", flush=True)
sys.stdin.readline()
while written < count and conflicts < 20_000:
    try:
        agent = agent or opened()
        agent(f"{name} {written}")
        written += 1
    except SessionConflictError:
        conflicts += 1
        agent = None
print(written, conflicts)
"""


def test_two_processes_write_two_hundred_turns_each_and_none_is_lost(make_agent, tmp_path, race):
    """Scenario A12."""
    count = 200
    said = race(WRITER, *([str(tmp_path), name, str(count)] for name in ("a", "b")))

    assert [int(written) for written, _ in said] == [count, count]
    assert sum(int(conflicts) for _, conflicts in said) >= 1, "both began with an empty log"
    manager = FileSessionManager("s", tmp_path)
    agent, _ = make_agent(["x"], session_manager=manager)
    assert_valid_history(agent.messages)
    texts = [message["content"][0]["text"] for message in agent.messages]
    assert texts[1::2] == ["yes"] * 2 * count
    for name in ("a", "b"):
        assert [text for text in texts if text.startswith(name)] == [f"{name} {number}" for number in range(count)]

    assert not list(tmp_path.rglob("set-aside-*"))


# -- A13 and A14 ---------------------------------------------------------------------------------------------------


def test_half_an_emoji_is_saved_and_read(in_session):
    """Scenario A13."""

    @tool
    def give() -> str:
        """Gives half an emoji."""
        return "bad \ud83d end"

    events = [
        {"messageStart": {"role": "assistant"}},
        *[
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": piece}}}
            for piece in ("smile \ud83d", "\ude42", " and \ud83d")
        ],
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    agent, _ = in_session([use("give", {}), turn(raw=events)], tools=[give])
    agent("half \ud83d")
    agent.state.set("\ud83d", ["\ud83d"])
    in_session([])[0]

    again, _ = in_session(["ok"])
    assert again.messages == agent.messages
    assert again.messages[-1]["content"] == [{"text": "smile \U0001f642 and \ufffd"}]


@pytest.mark.parametrize(
    "value",
    [
        {"v": float("nan"), "w": float("inf")},
        {"price": Decimal("1.10"), "id": uuid.UUID(int=1)},
        {"blob": b"\x00\xff"},
        {"n": 2**70, "huge": 10**700},
        {"a", "b"},
        {1: "one", None: "none"},
    ],
    ids=["nan", "decimal", "bytes", "integers", "set", "keys"],
)
def test_whatever_a_tool_gives_is_saved_and_read(in_session, log, value):
    """Scenario A14."""

    @tool
    def give() -> dict:
        """Gives something odd."""
        return {"status": "success", "content": [{"json": value}]}

    @tool
    def plain() -> object:
        """Gives it as it is."""
        return value

    agent, _ = in_session([[use("give", {}), use("plain", {})], "ok"], tools=[give, plain])
    agent("go")
    again, _ = in_session(["x"])
    assert again.messages == agent.messages
    for line in log.read_text(encoding="utf-8").splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


# -- A15 -----------------------------------------------------------------------------------------------------------

ANGSTROM = "ÅNGSTRÖM"
IDS = [
    "../x", "a/b", "..", ".", "a\\..\\..\\b", "C:evil", "CON", "con", "nul.txt", "end.", "end", "a\nb", "a\0b",
    "x" * 300, "x" * 301, unicodedata.normalize("NFC", ANGSTROM), unicodedata.normalize("NFD", ANGSTROM), "Foo", "foo",
    "FOO", "~", "-", ".deleted-1", "log.jsonl", "lock", "\ud83d", "a b", "a_b", "a--b", "foo--", "%2e%2e", "\u202e",
    "0", "LPT1", "com9",
]  # fmt: skip
HELD_EVERYWHERE = re.compile(r"[a-z0-9]+(?:[_-]+[a-z0-9]+)*")
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def test_every_id_has_a_folder_of_its_own_that_every_system_holds(make_agent, tmp_path):
    """Scenario A15."""
    root = tmp_path / "deep" / "root"
    for each in IDS:
        agent, _ = make_agent(["ok"], session_manager=FileSessionManager(each, root))
        agent(f"I am {IDS.index(each)}")
        note = Record("r", 0, "once", {"key": each, "value": 1})
        asyncio.run(FileLogStore(root).append(LogKey("agents", each), [note], 0))

    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["root"]
    for folder in (root, root / "agents"):
        names = [path.name for path in folder.iterdir() if path.is_dir()]
        assert len({name.lower() for name in names}) == len(names) >= len(IDS)
        for name in names:
            assert HELD_EVERYWHERE.fullmatch(name), name
            assert name not in RESERVED
            assert len(name) <= 100

    for number, each in enumerate(IDS):
        manager = FileSessionManager(each, root)
        agent, _ = make_agent(["ok"], session_manager=manager)
        assert agent.messages[0]["content"] == [{"text": f"I am {number}"}]

    found = {info.key for info in FileLogStore(root).logs()}
    assert {key.session_id for key in found} == {*IDS, "agents"}
    assert {key.agent_id for key in found if key.session_id == "agents"} == set(IDS)


@pytest.mark.parametrize("session", ["", " ", "\t\n"])
def test_blank_ids_are_refused(tmp_path, session):
    """Scenario A15."""
    with pytest.raises(SessionException):
        FileSessionManager(session, tmp_path)


def test_a_link_that_waits_at_the_target_is_not_followed(in_session, tmp_path):
    """Scenario A15."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "victim")
    with pytest.raises(SessionException, match="links are not followed"):
        in_session(["1"])[0]("one")

    assert list((tmp_path / "victim").iterdir()) == []
