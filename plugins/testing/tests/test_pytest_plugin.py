"""The fixtures, as another project would use them."""

from __future__ import annotations

import os

from ropewalk_testing import ScriptedModel, turn


def test_scripted_makes_models(scripted):
    model = scripted("hello", turn(stall=True), record=False)

    assert isinstance(model, ScriptedModel)
    assert repr(model) == "<ScriptedModel: 0 calls of 2 turns>"


def test_the_environment_can_be_freed_of_settings(ropewalk_env):
    assert [name for name in os.environ if name.startswith("ROPEWALK_")] == []


def test_installed_plugins_can_be_kept_out(no_plugins_env):
    assert os.environ["ROPEWALK_PLUGINS"] == "none"
