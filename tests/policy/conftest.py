"""A policy that is really installed, with a rule that each test writes, and agents that it governs."""

from __future__ import annotations

import importlib
import itertools
import sys
from types import SimpleNamespace

import pytest

from ropewalk import Agent
from ropewalk.kits.hooks import discovery
from ropewalk_testing import ScriptedModel

SOURCE = '''
from ropewalk import hookimpl


class GuardPlugin:
    """Asks the rule of the test."""

    name = "{name}"
    tier = "{tier}"
    rule = None
    holds_output = False
    time_limit = 30.0

    @hookimpl
    async def intervene(self, moment, subject, agent):
        return await self.rule(moment, subject, agent) if self.rule else None
'''
NUMBERS = itertools.count()


class Site:
    """A folder on the path, into which distributions with one plugin each are written."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, name, *, tier="policy", source=SOURCE, on_demand=False):
        module = f"guard_{next(NUMBERS)}_{name.replace('-', '_')}"
        (self.folder / f"{module}.py").write_text(source.format(name=name, tier=tier))
        info = self.folder / f"acme_{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n")
        groups = ["ropewalk.plugins", *(["ropewalk.on_demand"] if on_demand else [])]
        points = "".join(f"[{group}]\n{name} = {module}:GuardPlugin\n" for group in groups)
        (info / "entry_points.txt").write_text(points)
        discovery._current = discovery._policies = None  # a process reads them once; each test is one
        return module


@pytest.fixture
def site(tmp_path, monkeypatch, ropewalk_env):
    folder = tmp_path / "site"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    discovery._current = discovery._policies = None  # read before, by another test
    yield Site(folder)
    for name in set(sys.modules) - before:
        if name.startswith("guard_"):
            del sys.modules[name]

    discovery._current = discovery._policies = None


@pytest.fixture
def govern(site, ropewalk_env):
    """Puts a policy in force: `govern(rule)` gives its class. Installed plugins stay on."""

    def put(rule=None, name="guard", **attributes):
        module = site.install(name, on_demand=True)
        ropewalk_env.setenv("ROPEWALK_POLICY", name)
        cls = importlib.import_module(module).GuardPlugin
        cls.rule = staticmethod(rule) if rule else None
        for attribute, value in attributes.items():
            setattr(cls, attribute, value)

        return cls

    return put


class Probe:
    """A tool that notes with which arguments it ran."""

    def __init__(self, name, answer="ran"):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}
        self.answer = answer
        self.ran = []

    async def invoke(self, call):
        self.ran.append(call.tool_use["input"])
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": self.answer}]}


@pytest.fixture
def tools():
    """`danger`, which the rules of the tests deny, and `safe`."""
    return SimpleNamespace(danger=Probe("danger"), safe=Probe("safe"))


@pytest.fixture
def make_agent(tools):
    """Builds an agent with both tools: `make_agent(turn, ..., plugins=[...])`."""

    def make(*turns, **parameters):
        given = {"callback_handler": None, "tools": [tools.danger, tools.safe], **parameters}
        return Agent(model=ScriptedModel(turns), **given)

    return make


@pytest.fixture
def results():
    """The tool results of an agent's history: (status, text) by id."""

    def find(agent):
        blocks = [
            block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block
        ]
        return {block["toolUseId"]: (block["status"], block["content"][0]["text"]) for block in blocks}

    return find


@pytest.fixture
def plugin():
    """A plugin of one class of its own: `plugin("name", order=-1, around_tool_call=function)`."""
    from ropewalk import hookimpl

    def make(plugin_name, first=False, **body):
        marked = {key: hookimpl(tryfirst=first)(value) if callable(value) else value for key, value in body.items()}
        return type("Plugin", (), {"name": plugin_name, **marked})()

    return make
