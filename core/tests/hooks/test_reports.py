from __future__ import annotations

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.hooks import assemble, describe_plugins, order_of
from ropewalk.markers import hookimpl


def test_every_installed_plugin_is_described(site, monkeypatch):
    site.plugin("auto", parameters=["sandbox"])
    site.plugin("off")
    site.plugin("demand", on_demand=True)
    site.add("ropewalk-retry", version="0.1.0", plugins={"retry": "no_such:P"})
    monkeypatch.setenv("ROPEWALK_PLUGINS", "-off")
    found = {report.name: report for report in describe_plugins()}

    assert list(found) == ["auto", "demand", "off", "retry"]
    auto = found["auto"]
    assert (auto.distribution, auto.version, auto.bundled, auto.on_demand, auto.active, auto.provides, auto.error) == (
        "fake-auto", "1.0", False, False, True, ("sandbox",), None,
    )  # fmt: skip
    assert (found["demand"].on_demand, found["demand"].active) == (True, False)
    assert found["off"].active is False
    assert (found["retry"].bundled, found["retry"].active) == (True, False)
    assert "ModuleNotFoundError" in str(found["retry"].error)


def test_a_collision_is_described_and_not_raised(site):
    site.add("left", plugins={"same": "left:P"})
    site.add("right", plugins={"same": "right:P"})
    [report] = describe_plugins()

    assert not report.active
    assert "left 1.0 (left:P) and by right 1.0 (right:P)" in str(report.error)


def test_the_order_of_a_hook_is_its_calling_order(site):
    class Early:
        name = "early"
        order = -1

        @hookimpl
        async def around_tools(self, batch, call_next): ...

    site.plugin("auto")
    late = type("Late", (Early,), {"name": "late", "order": 1})
    hooks = assemble([late, Early], {}, None)

    assert order_of("around_tools", hooks) == ["early", "late"]
    assert order_of("on_event", hooks) == ["auto"]
    assert order_of("admit", hooks) == []
    with pytest.raises(PluginError, match="no hook 'around_tool': did you mean 'around_tools'"):
        order_of("around_tool", hooks)
