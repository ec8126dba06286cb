"""`ropewalk plugins explain`."""

from __future__ import annotations

import json

import pytest

from ropewalk import hookimpl
from ropewalk.kits.hooks import Hooks
from ropewalk_cli.explaining import kind_of, rows_of, summary_of


def plugin(plugin_name, *, first=False, last=False, **body):
    async def on_event(self, event): ...

    async def around_tools(self, batch, call_next): ...

    hook = hookimpl(tryfirst=first, trylast=last)(on_event if body.get("tier") == "observer" else around_tools)
    return type("Plugin", (), {"name": plugin_name, hook.__name__: hook, **body})()


def test_each_place_has_a_reason():
    plugins = [
        plugin("plain"),
        plugin("twin"),
        plugin("pushy", first=True),
        plugin("shy", last=True),
        plugin("late", order=5, first=True),
        plugin("early", order=-5),
        plugin("police", tier="policy", order=9),
    ]

    rows = rows_of("around_tools", Hooks.of(plugins))

    assert [(row["plugin"], row["why"]) for row in rows] == [
        ("police", "first"),
        ("early", "after police by tier"),
        ("pushy", "after early by order"),
        ("plain", "after pushy by tryfirst, trylast"),
        ("twin", "after plain by position"),
        ("shy", "after twin by tryfirst, trylast"),
        ("late", "after shy by order"),
    ]
    assert (rows[2]["mark"], rows[5]["mark"], rows[3]["mark"], rows[6]["order"]) == ("tryfirst", "trylast", "-", 5)
    assert rows[0]["defined"].rpartition(":")[0] == __file__


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        ("around_tools", "awaited, a chain: the first is the outermost"),
        ("provide_model", "synchronous, up to the first answer that is not None"),
        ("decide_retry", "awaited, up to the first answer that is not None"),
        ("on_delta", "synchronous, all are called"),
    ],
)
def test_the_kind_of_a_hook_is_said(hook, kind):
    assert kind_of(hook) == kind
    assert summary_of(hook).endswith(".")


def test_the_order_is_shown_with_its_rule(shell):
    result = shell.run("plugins", "explain", "provide_model")

    assert result.exit_code == 0
    assert "provide_model: synchronous, up to the first answer that is not None" in result.stdout
    assert "No plugin that is active here implements it." in result.stdout

    shell.environment["ROPEWALK_PLUGINS"] = "none,testing"
    rows = [line.split() for line in shell.run("plugins", "explain", "provide_model").stdout.splitlines()]
    assert ["PLUGIN", "TIER", "ORDER", "MARK", "POSITION", "WHY", "FROM", "DEFINED"] in rows
    assert ["testing", "normal", "0", "-", "1", "first", "ropewalk-testing", "0.1.0"] in [row[:8] for row in rows]
    assert any(row[:3] == ["Ordered", "by", "tier"] for row in rows)


def test_it_is_available_as_json(shell):
    shell.environment["ROPEWALK_PLUGINS"] = "none,testing"

    found = json.loads(shell.run("plugins", "explain", "provide_model", "--json").stdout)

    assert (found["hook"], [row["plugin"] for row in found["order"]]) == ("provide_model", ["testing"])


def test_an_unknown_hook_gets_a_suggestion(shell):
    result = shell.run("plugins", "explain", "provide_modell")

    assert result.exit_code == 1
    assert "there is no hook 'provide_modell': did you mean 'provide_model'?" in result.stderr
