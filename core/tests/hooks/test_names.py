from __future__ import annotations

import sys

import pytest

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks.names import NAMES, resolve
from ropewalk.kits.hooks.parameters import KNOWN_PLUGINS


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes the module that brings `tool`, in place of an installed one."""
    monkeypatch.setitem(NAMES, "tool", ("fake_tools_module", "ropewalk-tools"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield (tmp_path / "fake_tools_module.py").write_text
    sys.modules.pop("fake_tools_module", None)


def test_a_name_is_found_in_its_plugin(module):
    module("tool = 'the decorator'")

    assert resolve("tool") == "the decorator"


def test_a_missing_plugin_says_what_to_install(module):
    with pytest.raises(MissingPluginError) as caught:
        resolve("tool")

    assert str(caught.value) == "ropewalk.tool needs the plugin ropewalk-tools: pip install ropewalk-tools"


def test_a_plugin_that_lacks_a_dependency_shows_that_error(module):
    module("import no_such_dependency")

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        resolve("tool")


def test_a_plugin_without_the_name_is_too_old(module):
    module("")

    with pytest.raises(PluginError, match="ropewalk-tools has no tool: pip install --upgrade"):
        resolve("tool")


def test_any_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ropewalk' has no attribute 'tol'"):
        resolve("tol")


def test_every_name_leads_to_a_known_plugin():
    assert {distribution for _, distribution in NAMES.values()} <= set(KNOWN_PLUGINS.values())
    assert NAMES["FileSessionManager"] == ("ropewalk_session_file", "ropewalk-session-file")


def test_a_name_that_is_nearly_one_is_answered_with_that_one():
    with pytest.raises(AttributeError, match=r"did you mean FileSessionManager\?"):
        resolve("FileSesionManager")
