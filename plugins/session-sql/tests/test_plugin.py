"""The manager with agents, its options, and the plugin under its name."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Final

import pytest

import ropewalk
from ropewalk import Agent
from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_sql import SQLSessionManager, SQLSessionPlugin
from ropewalk_testing import PluginContract, ScriptedModel, text, use


class TestContract(PluginContract):
    plugin = SQLSessionPlugin


class Echo:
    tool_name = "echo"
    tool_spec: Final = {"name": "echo", "description": "Says it.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        content = [{"json": call.tool_use["input"]}]
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": content}


def test_an_agent_goes_on_where_the_session_ended(url, make_agent):
    turns = [[text("I ask."), use("echo", {"a": "Å"}, id="T1")], "Done.", "And again."]
    manager = SQLSessionManager("order-17", url)
    agent = make_agent(manager, turns, tools=[Echo()])
    agent("Hi.")
    agent.state.set("color", "red")
    agent("More.")

    again = make_agent(SQLSessionManager("order-17", url), ["Third."])

    assert again.messages == agent.messages
    assert again.state.get("color") == "red"
    again("Now?")
    assert len(make_agent(SQLSessionManager("order-17", url), []).messages) == len(agent.messages) + 2


def test_agents_of_one_session_are_told_apart_by_their_ids(url, make_agent):
    manager = SQLSessionManager("order-17", url)
    make_agent(manager, ["one"], agent_id="a")("Hi.")
    make_agent(manager, ["two"], agent_id="b")("Hi.")

    assert [info.key.agent_id for info in manager.store.logs("order-17")] == ["a", "b"]
    assert manager.size() > 100


def test_of_two_agents_on_one_session_the_second_writer_gets_a_conflict(url, make_agent):
    first = make_agent(SQLSessionManager("order-17", url), ["1", "2"])
    second = make_agent(SQLSessionManager("order-17", url), ["3"])
    first("from x")
    with pytest.raises(SessionConflictError):
        second("from y")

    first("x again")
    texts = [
        block["text"]
        for message in make_agent(SQLSessionManager("order-17", url), []).messages
        for block in message["content"]
    ]
    assert texts == ["from x", "1", "x again", "2"]


def test_retention_folds_what_is_old(url, make_agent):
    manager = SQLSessionManager("order-17", url, keep_last=1)
    agent = make_agent(manager, [str(number) for number in range(12)])
    for _ in range(12):
        agent("Hi.")

    again = make_agent(SQLSessionManager("order-17", url), [])
    assert again.messages == agent.messages
    (info,) = manager.store.logs()
    runs = {record.run for record in manager.store.read(info.key).records}
    assert len(runs) < 12


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("mysql://host/db", "SQLite and PostgreSQL"),
        ("sqlite+aiosqlite:///x", "SQLite and PostgreSQL"),
        ("sqlite:///file:x?uri=true", "SQLite and PostgreSQL"),
        ("not a url", "no database URL"),
        ("", "no database URL"),
        (17, "no database URL"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_at_once(wrong, message):
    with pytest.raises(SessionException, match=message):
        SQLSessionManager("order-17", wrong)


def test_a_password_is_in_no_message():
    with pytest.raises(SessionException) as caught:
        SQLSessionManager("order-17", "mysql://me:geheim@host/db")

    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(SQLSessionManager("order-17", "postgresql://me:geheim@host/db"))


@pytest.mark.parametrize("wrong", ["", "  ", None, 7])
def test_a_blank_session_id_is_refused(wrong):
    with pytest.raises(SessionException, match="session_id"):
        SQLSessionManager(wrong)


def test_a_wrong_durability_is_refused():
    with pytest.raises(SessionException, match="durability"):
        SQLSessionManager("order-17", durability="forever")


def test_the_plugin_makes_a_manager_of_its_options(sqlite_url):
    options = {"session_id": "order-17", "url": sqlite_url}
    agent = Agent(model=ScriptedModel(["Hello."]), callback_handler=None, plugins=[("session-sql", options)])
    agent("Hi.")

    again = Agent(model=ScriptedModel([]), callback_handler=None, plugins=[("session-sql", options)])
    assert again.messages == agent.messages


async def test_closing_an_agent_of_the_plugin_writes_what_was_changed_since_its_last_run(sqlite_url):
    options = {"session_id": "order-17", "url": sqlite_url}
    agent = Agent(model=ScriptedModel(["Hello."]), callback_handler=None, plugins=[("session-sql", options)])
    await agent.invoke_async("Hi.")
    agent.state.set("color", "red")
    await agent.aclose()

    again = Agent(model=ScriptedModel([]), callback_handler=None, plugins=[("session-sql", options)])
    assert again.state.get("color") == "red"


def test_without_a_session_id_the_plugin_says_that_nothing_is_kept(caplog):
    with caplog.at_level(logging.WARNING, "ropewalk.sessions"):
        Agent(model=ScriptedModel(["Hello."]), callback_handler=None, plugins=["session-sql"])("Hi.")

    assert "nothing of agent 'default' is kept" in caplog.text


def test_the_manager_imports_from_ropewalk():
    assert ropewalk.SQLSessionManager is SQLSessionManager


def test_making_a_manager_of_the_default_file_imports_no_sqlalchemy_before_it_is_needed():
    code = "import sys, ropewalk_session_sql; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_url_names_the_database_of_a_store(tmp_path):
    url = f"sqlite:///{tmp_path / 'one.db'}"
    made = SQLSessionPlugin(SQLSessionPlugin.Config(url=url))

    assert repr(made.open_store(None)) == repr(made.open_store(url))
    assert "two.db" in repr(made.open_store(f"sqlite:///{tmp_path / 'two.db'}"))
    with pytest.raises(SessionException, match="no database URL"):
        made.open_store("")
