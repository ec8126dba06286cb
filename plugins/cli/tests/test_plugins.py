"""`ropewalk plugins`."""

from __future__ import annotations

import json

import pytest

from ropewalk.kits.hooks.reports import PluginReport
from ropewalk_cli.plugins import as_text, providers, state_of


def report(**changes):
    fields = {
        "name": "one",
        "distribution": "ropewalk-one",
        "version": "1.0",
        "bundled": False,
        "on_demand": False,
        "active": True,
        "provides": (),
        "error": None,
    }
    return PluginReport(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "active"),
        ({"active": False, "on_demand": True}, "on demand"),
        ({"active": True, "on_demand": True}, "active"),
        ({"active": False}, "off"),
        ({"active": False, "error": "it is broken"}, "broken"),
    ],
)
def test_a_plugin_has_one_of_four_states(changes, state):
    assert state_of(report(**changes)) == state


def test_the_installed_plugins_are_listed_with_their_roles(shell):
    result = shell.run("plugins")

    rows = [line.split() for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert ["PLUGIN", "STATE", "VERSION", "FROM"] in rows
    assert ["cli", "on", "demand", "0.1.0", "ropewalk-cli", "(bundled)"] in rows
    assert ["model.testing", "testing"] in rows


def test_the_listing_is_available_as_json(shell):
    found = json.loads(shell.run("plugins", "--json").stdout)

    by_name = {plugin["name"]: plugin for plugin in found["plugins"]}
    assert by_name["testing"]["state"] == "on demand"
    assert by_name["testing"]["provides"] == ["model.testing"]
    assert found["providers"]["model.testing"] == ["testing"]


def test_every_owner_of_a_parameter_is_listed(monkeypatch):
    owners = {"model.x": ("one",), "context_manager": ("agentic", "auto")}
    monkeypatch.setattr("ropewalk_cli.plugins.owners_of", owners.get)

    found = providers([report(provides=("context_manager", "model.x")), report(provides=("context_manager",))])
    text = as_text([report()], {"providers": found, "order": {}})

    assert found == {"context_manager": ["agentic", "auto"], "model.x": ["one"]}
    assert text.splitlines()[-3:] == [
        "ROLE             PROVIDED BY",
        "context_manager  agentic, auto",
        "model.x          one",
    ]


def test_the_order_follows_the_environment(shell):
    shell.environment["ROPEWALK_PLUGINS"] = "none,testing"

    found = json.loads(shell.run("plugins", "--json").stdout)

    assert found["order"] == {"provide_model": ["testing"]}
    assert [plugin["name"] for plugin in found["plugins"] if plugin["active"]] == ["testing"]


def test_what_is_broken_is_said_below_the_table():
    reports = [report(name="good"), report(name="bad", active=False, error="plugin 'bad' cannot be loaded")]

    text = as_text(reports, {"providers": {}, "order": {"on_event": ["good", "x"]}})

    assert text.splitlines() == [
        "PLUGIN  STATE   VERSION  FROM",
        "good    active  1.0      ropewalk-one",
        "bad     broken  1.0      ropewalk-one",
        "",
        "bad: plugin 'bad' cannot be loaded",
        "",
        "HOOK      ORDER",
        "on_event  good, x",
    ]


def test_no_plugins_at_all_is_said():
    assert as_text([], {}) == "No plugins are installed: pip install ropewalk"
