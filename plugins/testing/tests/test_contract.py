"""The contract sees what it is there to see: each of its tests fails for a plugin that deserves it."""

from __future__ import annotations

import sys
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import pytest

from ropewalk import Agent, PluginError, hookimpl
from ropewalk_testing import PluginContract, ScriptedModel, TestingPlugin
from ropewalk_testing.snapshots import snapshot


class Good:
    """Counts tool calls, in its cell, and buffers events, weakly."""

    name = "good"

    def __init__(self):
        self.words = ["so"]
        self.buffers = WeakKeyDictionary()

    @cached_property
    def client(self):
        return object()

    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        cell = agent.plugin_state("good")
        cell.set("calls", cell.get("calls", 0) + 1)
        self.buffers.setdefault(agent, []).append(self.client)
        return await call_next(call)


class TestGood(PluginContract):
    plugin = Good
    installed = False
    may_change = ("client",)

    def outcome(self, agent, result):
        return super().outcome(agent, result), agent.plugin_state("good").get("calls")


class TestInstalled(PluginContract):
    plugin = TestingPlugin


def contract(plugin, **attributes):
    return type("Contract", (PluginContract,), {"plugin": plugin, "installed": False, **attributes})()


def test_a_plugin_that_needs_an_argument_is_refused():
    class Needy(Good):
        def __init__(self, folder): ...

    with pytest.raises(TypeError, match="folder"):
        contract(Needy).test_it_is_made_without_options()


def test_a_plugin_with_an_unknown_hook_is_refused():
    class Unknown(Good):
        @hookimpl
        def on_dleta(self, event): ...

    with pytest.raises(PluginError, match="did you mean 'on_delta'"):
        contract(Unknown).test_it_implements_hooks_that_exist()


def test_a_plugin_without_hooks_is_refused():
    with pytest.raises(PluginError, match="is no plugin"):
        contract(type("Empty", (), {"name": "empty"})).test_it_implements_hooks_that_exist()


def module_contract(monkeypatch, folder, source):
    (folder / "written_plugin.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    entry = SimpleNamespace(entry_point=SimpleNamespace(module="written_plugin"))
    return contract(Good, heavy=("boto3", "sqlite3"), _entry=lambda self: entry)


@pytest.mark.parametrize("source", ["import sqlite3.dbapi2", "import sys; sys.modules['boto3'] = sys"])
def test_a_heavy_import_is_seen(tmp_path, monkeypatch, source):
    with pytest.raises(AssertionError):
        module_contract(monkeypatch, tmp_path, source).test_importing_it_is_cheap()


def test_many_imported_modules_are_seen(tmp_path, monkeypatch):
    source = "import sys\nfor n in range(100): sys.modules[f'm{n}'] = sys"
    with pytest.raises(AssertionError, match="loads 101 modules"):
        module_contract(monkeypatch, tmp_path, source).test_importing_it_is_cheap()


def test_a_light_module_passes(tmp_path, monkeypatch):
    assert module_contract(monkeypatch, tmp_path, "import json").test_importing_it_is_cheap() is None


def test_a_plugin_that_is_not_installed_is_seen():
    with pytest.raises(AssertionError, match="no installed distribution has an entry point 'good'"):
        contract(Good, installed=True).test_its_entry_point_bears_its_name()


def test_another_class_behind_the_entry_point_is_seen():
    other = type("Other", (Good,), {"name": "testing"})

    with pytest.raises(AssertionError):
        contract(other, installed=True).test_its_entry_point_bears_its_name()


class InItself(Good):
    def __init__(self):
        super().__init__()
        self.calls = 0

    @hookimpl
    async def around_tool_call(self, call, call_next):
        self.calls += 1
        return await call_next(call)


class InItsClass(Good):
    seen = []  # noqa: RUF012 - the fault in question

    @hookimpl
    async def around_tool_call(self, call, call_next):
        self.seen.append(call.tool_use["toolUseId"])
        return await call_next(call)


class InASlot:
    __slots__ = ("calls",)
    name = "slot"

    def __init__(self):
        self.calls = 0

    @hookimpl
    async def around_tool_call(self, call, call_next):
        self.calls += 1
        return await call_next(call)


class MixesAgentsUp(Good):
    """Writes to nothing that it keeps, and yet lets one agent's call reach the other."""

    def __init__(self):
        super().__init__()
        self.last = WeakKeyDictionary()

    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        for other in self.last:
            if other is not agent:
                return await call_next(call.with_input({"value": "somebody else's"}))

        self.last[agent] = True
        return await call_next(call)


class KeepsAgents(Good):
    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        self.buffers[agent] = [agent]
        return await call_next(call)


@pytest.mark.parametrize("plugin", [InItself, InItsClass, InASlot, MixesAgentsUp, KeepsAgents])
async def test_state_outside_the_cell_is_seen(plugin, no_plugins_env):
    with pytest.raises(AssertionError):
        await contract(plugin, may_change=("client",)).test_one_instance_serves_two_agents_at_once()


async def test_a_client_that_is_made_late_has_to_be_named(no_plugins_env):
    with pytest.raises(AssertionError, match="plugin_state"):
        await contract(Good).test_one_instance_serves_two_agents_at_once()


async def test_a_script_that_ends_otherwise_is_told(no_plugins_env):
    class Contract(PluginContract):
        plugin = TestingPlugin

        def make_agent(self, plugin, word):
            return Agent(model=ScriptedModel([word]), plugins=[plugin], callback_handler=None)

    with pytest.raises(AssertionError, match="the script of make_agent ends in"):
        await Contract().test_an_agent_runs_with_it_switched_off(no_plugins_env)


async def test_a_parameter_that_works_without_its_plugin_is_seen(monkeypatch, ropewalk_env):
    monkeypatch.setattr(sys.modules["ropewalk_testing.contract"], "_use", _nothing)
    tests = contract(TestingPlugin, installed=True)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await tests.test_what_it_provides_says_so_when_it_is_switched_off(ropewalk_env)


async def _nothing(parameter):
    return None


@pytest.mark.parametrize(
    "change",
    [
        lambda box: box["list"].append(1),
        lambda box: box["dict"].update(a=2),
        lambda box: box["set"].add(2),
        lambda box: setattr(box["object"], "attribute", 2),
        lambda box: next(box["counter"]),
    ],
)
def test_a_snapshot_sees_what_changed_inside(change):
    holder = Good()
    holder.box = {"list": [], "dict": {"a": 1}, "set": {1}, "object": Good(), "counter": count()}
    before = snapshot(holder)

    change(holder.box)

    assert snapshot(holder) != before
    assert snapshot(holder, without=("box",)) == snapshot(holder, without=("box",))


def test_a_snapshot_of_what_refers_to_itself_ends():
    holder = Good()
    holder.me = holder
    assert snapshot(holder) == snapshot(holder)
