"""The manager with agents, and the plugin under its name."""

from __future__ import annotations

import logging

import pytest

import ropewalk
from ropewalk import Agent
from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_s3 import S3SessionManager, S3SessionPlugin
from ropewalk_testing import PluginContract, ScriptedModel


class TestContract(PluginContract):
    plugin = S3SessionPlugin


def test_an_agent_goes_on_where_the_session_ended(open_manager, make_agent):
    agent = make_agent(open_manager(), ["One.", "Two."])
    agent("Hi.")
    agent.state.set("color", "red")
    agent("More.")

    again = make_agent(open_manager(), ["Three."])

    assert again.messages == agent.messages
    assert again.state.get("color") == "red"
    again("Now?")
    assert len(make_agent(open_manager(), []).messages) == 6


def test_of_two_agents_on_one_session_the_second_writer_gets_a_conflict(open_manager, make_agent):
    first = make_agent(open_manager(), ["1", "2"])
    second = make_agent(open_manager(), ["3"])
    first("from x")
    with pytest.raises(SessionConflictError):
        second("from y")

    first("x again")
    messages = make_agent(open_manager(), []).messages
    assert [message["content"][0]["text"] for message in messages] == ["from x", "1", "x again", "2"]


def test_a_write_that_fails_in_a_run_is_made_good_by_the_next_call(open_manager, make_agent, monkeypatch):
    manager = open_manager()
    agent = make_agent(manager, ["One.", "Two."])
    bucket = manager.store._bucket
    name, commits = bucket.name, []
    inner = bucket.put

    def put(key, body, *, etag):
        commits.append(key)
        bucket.name = "gone-17" if len(commits) == 3 else name
        return inner(key, body, etag=etag)

    monkeypatch.setattr(bucket, "put", put)
    with pytest.raises(SessionException, match="NoSuchBucket"):
        agent("Hi.")

    monkeypatch.undo()
    bucket.name = name
    agent("Are you there?")

    again = make_agent(open_manager(), [])
    assert again.messages == agent.messages


def test_retention_folds_what_is_old(open_manager, make_agent):
    manager = open_manager(keep_last=1)
    agent = make_agent(manager, [str(number) for number in range(6)])
    for _ in range(6):
        agent("Hi.")

    assert make_agent(open_manager(), []).messages == agent.messages
    (info,) = manager.store.logs()
    assert len({record.run for record in manager.store.read(info.key).records}) < 6


def test_the_plugin_makes_a_manager_of_its_options(options):
    given = {"session_id": "order-17", **options}
    agent = Agent(model=ScriptedModel(["Hello."]), callback_handler=None, plugins=[("session-s3", given)])
    agent("Hi.")

    again = Agent(model=ScriptedModel([]), callback_handler=None, plugins=[("session-s3", given)])
    assert again.messages == agent.messages


async def test_closing_an_agent_of_the_plugin_writes_what_was_changed_since_its_last_run(options):
    given = {"session_id": "order-17", **options}
    agent = Agent(model=ScriptedModel(["Hello."]), callback_handler=None, plugins=[("session-s3", given)])
    await agent.invoke_async("Hi.")
    agent.state.set("color", "red")
    await agent.aclose()

    again = Agent(model=ScriptedModel([]), callback_handler=None, plugins=[("session-s3", given)])
    assert again.state.get("color") == "red"


@pytest.mark.parametrize("given", [{}, {"session_id": "order-17"}, {"bucket": "b"}])
def test_without_a_session_id_or_a_bucket_the_plugin_says_that_nothing_is_kept(caplog, given):
    with caplog.at_level(logging.WARNING, "ropewalk.sessions"):
        Agent(model=ScriptedModel(["Hello."]), callback_handler=None, plugins=[("session-s3", given)])("Hi.")

    assert "nothing of agent 'default' is kept" in caplog.text


def test_the_manager_imports_from_ropewalk():
    assert ropewalk.S3SessionManager is S3SessionManager


def test_arguments_have_the_order_of_the_documentation():
    manager = S3SessionManager("order-17", "bucket", "prefix", None, "eu-west-1", "http://127.0.0.1:9", None)
    assert repr(manager) == "S3SessionManager('order-17', S3LogStore('bucket', 'prefix/'))"


def test_a_url_names_the_bucket_and_the_prefix_of_a_store():
    made = S3SessionPlugin(S3SessionPlugin.Config(bucket="mine", prefix="a/b", region_name="eu-west-1"))

    assert repr(made.open_store("s3://other/c/d")) == "S3LogStore('other', 'c/d/')"
    assert repr(made.open_store("s3://other")) == "S3LogStore('other', '')"
    assert repr(made.open_store(None)) == "S3LogStore('mine', 'a/b/')"
    with pytest.raises(SessionException, match="names no bucket: give s3://BUCKET/PREFIX"):
        made.open_store("s3:///c/d")
