"""The actions."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

import ropewalk
import ropewalk_interventions
from ropewalk_interventions import Confirm, Deny, Guide, Proceed, Transform, default_evaluate


@pytest.mark.parametrize("response", [True, "y", "Y", "yes", " Yes\n"])
def test_a_yes_is_a_yes(response):
    assert default_evaluate(response) is True


@pytest.mark.parametrize("response", [False, None, "", 0, 1, 1.0, "n", "no", "yeah", "yes!", [True], {"y": "y"}, b"y"])
def test_everything_else_is_a_no(response):
    assert default_evaluate(response) is False


@pytest.mark.parametrize("action", [Proceed(), Deny("r"), Guide("f"), Confirm("p"), Transform(print)])
def test_actions_cannot_be_written_to(action):
    with pytest.raises(FrozenInstanceError):
        setattr(action, fields(action)[0].name, "other")


@pytest.mark.parametrize(
    "name", ["Confirm", "Deny", "Guide", "HumanInTheLoop", "InterventionHandler", "Proceed", "Transform"]
)
def test_the_names_import_from_the_kernel(name):
    assert getattr(ropewalk, name) is getattr(ropewalk_interventions, name)
