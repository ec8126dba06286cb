"""What README.md shows can be done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ropewalk import Agent
from ropewalk.kits.hooks import Hooks
from ropewalk.kits.hooks.loading import made
from ropewalk_session_file import FileLogStore
from ropewalk_testing import ScriptedModel

PAGE = Path(__file__).resolve().parents[1] / "README.md"


@pytest.fixture
def plugin(tmp_path):
    """The plugin of the page, whose stores are folders; the texts that it was given are in `opened`."""
    [code] = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    opened = []
    names = {"RedisLogStore": lambda spec: opened.append(spec) or FileLogStore(tmp_path / "kept")}
    exec(compile(code, str(PAGE), "exec"), names)
    cls = names["RedisSessionPlugin"]
    cls.opened = opened
    return cls


def test_the_plugin_that_makes_stores_is_one(plugin, ropewalk_env):
    instance = made(plugin)
    Hooks.of([instance])

    assert isinstance(instance.open_store("redis://host/1"), FileLogStore)
    instance.open_store(None)
    assert plugin.opened == ["redis://host/1", "redis://127.0.0.1/0"]


def test_the_plugin_keeps_the_session_that_its_options_name(plugin, ropewalk_env):
    for number in (1, 2):
        instance = plugin(plugin.Config(session_id="ada"))
        agent = Agent(model=ScriptedModel(["Hi."]), plugins=[instance], callback_handler=None)
        agent("Go.")
        agent.close()
        assert len(agent.messages) == 2 * number
