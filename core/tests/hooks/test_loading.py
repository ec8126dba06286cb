"""Entry points that fail or collide (scenario A34), and how instances are made and shared."""

from __future__ import annotations

import re
import sys
import warnings

import pytest

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import assemble

HOOKED = """
from ropewalk.markers import hookimpl

class Plugin:
    name = "{name}"

    def __init__(self):
        {made}
        self.ready = True

    @hookimpl
    def on_delta(self, {argument}): ...
"""
BROKEN = {
    "a missing module": (
        "import no_such_module_at_all",
        "ModuleNotFoundError: No module named 'no_such_module_at_all'",
    ),
    "an error at import": ("raise RuntimeError('at import')", "RuntimeError: at import"),
    "an exit at import": ("raise SystemExit(3)", "SystemExit: 3"),
    "a syntax error": ("class Plugin(:", "SyntaxError"),
    "a missing class": ("", "AttributeError"),
    "no class": ("Plugin = object()", "is object and not a plugin class"),
    "no plugin": ("class Plugin: name = 'bad'", "is no plugin"),
    "another name": (HOOKED.format(name="other", argument="event", made=""), "the class is named 'other'"),
    "an unknown argument": (HOOKED.format(name="bad", argument="evnt", made=""), "no argument 'evnt'"),
    "an error in its constructor": (
        HOOKED.format(name="bad", argument="event", made="raise OSError('no')"),
        "OSError: no",
    ),
}


@pytest.fixture(params=BROKEN.values(), ids=BROKEN)
def broken(site, request):
    """Three distributions, the second one broken."""
    source, cause = request.param
    site.plugin("ant")
    site.add("fake-bad", version="6.6", plugins={"bad": "fake_bad:Plugin"}, modules={"fake_bad": source})
    site.plugin("cat")
    return cause


def names(hooks):
    return [plugin.name for plugin in hooks.plugins]


def test_the_good_ones_load_and_one_warning_names_the_bad_one(broken):
    with pytest.warns(RuntimeWarning) as caught:
        assert names(assemble(None, {}, None)) == ["ant", "cat"]

    [warning] = caught
    assert "plugin 'bad' cannot be loaded (entry point bad = fake_bad:Plugin of fake-bad 6.6)" in str(warning.message)
    assert broken in str(warning.message)
    assert "ROPEWALK_PLUGINS=-bad" in str(warning.message)
    with warnings.catch_warnings():  # once per process
        warnings.simplefilter("error")
        assert names(assemble(["-ant"], {}, None)) == ["cat"]


def test_strict_mode_raises(broken, monkeypatch):
    monkeypatch.setenv("ROPEWALK_STRICT", "1")

    for _ in range(2):
        with pytest.raises(PluginError, match=re.escape("of fake-bad 6.6")):
            assemble(None, {}, None)


def test_it_is_an_error_when_asked_for(broken):
    with pytest.raises(PluginError) as caught:
        assemble(["bad"], {}, None)

    assert broken in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_switch_keeps_it_from_being_touched(broken, monkeypatch):
    assert names(assemble(["-bad"], {}, None)) == ["ant", "cat"]
    monkeypatch.setenv("ROPEWALK_PLUGINS", "-bad")
    assert names(assemble(None, {}, None)) == ["ant", "cat"]
    monkeypatch.setenv("ROPEWALK_PLUGINS", "none")
    assert names(assemble(None, {}, None)) == []
    assert "fake_bad" not in sys.modules


def test_a_plugin_in_several_groups_is_loaded_once(site):
    site.plugin(
        "counted",
        parameters=["sandbox"],
        source="""
        from ropewalk.markers import hookimpl
        made = []

        class Plugin:
            name = "counted"

            def __init__(self):
                made.append(self)

            @hookimpl
            def adopt(self, value):
                return []
        """,
    )
    for _ in range(3):
        assert names(assemble(None, {"sandbox": 1}, None)) == ["counted"]

    assert names(assemble(["counted"], {}, None)) == ["counted"]
    import fake_counted

    assert len(fake_counted.made) == 1


def test_instances_without_options_of_an_agent_are_shared(site):
    site.plugin("one")
    site.plugin("two", on_demand=True)
    left, right = assemble(["two"], {}, None), assemble(["two", "-one"], {}, None)

    assert left.plugins[0] is right.plugins[0]
    assert assemble(None, {}, None).plugins[0] is left.plugins[1]


def test_a_known_plugin_that_is_not_installed_says_what_to_install(site):
    with pytest.raises(MissingPluginError, match="pip install ropewalk-memory") as caught:
        assemble(["memory"], {}, None)

    assert caught.value.distribution == "ropewalk-memory"
    assert "plugins=['memory']" in caught.value.wanted


def test_an_unknown_plugin_gets_a_suggestion_and_the_list(site):
    site.plugin("weather")

    with pytest.raises(PluginError, match=r"no plugin 'wether': did you mean 'weather'\? installed are weather"):
        assemble(["wether"], {}, None)
