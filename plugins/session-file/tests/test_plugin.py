from __future__ import annotations

import pytest

from ropewalk import Agent, FileSessionManager
from ropewalk.errors import PluginError
from ropewalk.kits.sessions import SessionException
from ropewalk_session_file import SessionFilePlugin
from ropewalk_testing import ScriptedModel


def agent(**parameters):
    return Agent(model=ScriptedModel(["hello"]), callback_handler=None, **parameters)


def test_nothing_is_kept_unasked():
    assert agent().session_manager is None


def test_an_id_alone_makes_a_manager_with_the_options_of_the_plugin(tmp_path):
    options = {"storage_dir": str(tmp_path), "durability": "power", "keep_last": 3}
    made = agent(session_manager="mine", plugins=[("session-file", options)])
    manager = made.session_manager

    assert isinstance(manager, FileSessionManager)
    assert (manager.session_id, manager.store.root, manager.store.durability) == ("mine", tmp_path, "power")
    assert manager.retention.keep_last == 3
    made("hi")
    assert len(agent(session_manager=FileSessionManager("mine", tmp_path)).messages) == 2


def test_a_manager_takes_the_place_of_the_plugin(tmp_path):
    made = agent(session_manager=FileSessionManager("mine", tmp_path))
    assert not [plugin for plugin in made.hooks.plugins if isinstance(plugin, SessionFilePlugin)]


def test_what_is_no_session_is_refused():
    with pytest.raises(ValueError, match="is no session manager: give FileSessionManager"):
        agent(session_manager=7)

    with pytest.raises(SessionException, match="not blank"):
        agent(session_manager=" ")


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(PluginError, match="durability"):
        agent(session_manager="s", plugins=[("session-file", {"storage_dir": str(tmp_path), "durability": "none"})])


def test_the_plugin_without_a_session_says_so(caplog):
    agent(plugins=["session-file"])
    assert "give session_manager=ID too" in caplog.text


@pytest.mark.parametrize("spec", ["{}", "file://{}", None])
def test_a_text_names_the_folder_of_a_store(tmp_path, spec):
    made = SessionFilePlugin(SessionFilePlugin.Config(storage_dir=str(tmp_path), durability="power"))
    store = made.open_store(spec.format(tmp_path) if spec is not None else None)

    assert (store.root, store.durability) == (tmp_path, "power")
