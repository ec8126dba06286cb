from __future__ import annotations

import pytest
from kernel_fakes import FakeModel

from ropewalk import Agent
from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import assemble, discovery, owner_of, require_owner
from ropewalk.markers import hookimpl


class Mine:
    name = "mine"

    @hookimpl
    def on_delta(self, event): ...


def named(value):
    made = Mine()
    made.name = value
    return made


def names(plugins=None, given=None):
    return [plugin.name for plugin in assemble(plugins, given or {}, None).plugins]


@pytest.fixture
def installed(site):
    """Two plugins that are active unasked, one on demand."""
    site.plugin("auto")
    site.plugin("bee")
    site.plugin("demand", on_demand=True)
    return site


def test_without_any_plugin_there_are_no_hooks(site):
    assert assemble(None, {}, None).plugins == ()


@pytest.mark.parametrize(
    ("variable", "plugins", "expected"),
    [
        (None, None, ["auto", "bee"]),
        (None, [], ["auto", "bee"]),
        (None, ["demand"], ["demand", "auto", "bee"]),
        (None, ["bee"], ["bee", "auto"]),
        (None, ["-auto"], ["bee"]),
        (None, ["-auto", "-bee", "demand"], ["demand"]),
        (None, ["-memory"], ["auto", "bee"]),
        (None, [Mine], ["mine", "auto", "bee"]),
        ("", None, ["auto", "bee"]),
        ("-auto", None, ["bee"]),
        ("-auto, -bee", None, []),
        ("none", None, []),
        ("none", ["bee"], ["bee"]),
        ("none,demand", None, ["demand"]),
        ("demand", None, ["demand", "auto", "bee"]),
        ("demand,-bee", ["auto"], ["auto", "demand"]),
    ],
)
def test_plugins_are_asked_for_and_switched_off(installed, monkeypatch, variable, plugins, expected):
    if variable is not None:
        monkeypatch.setenv("ROPEWALK_PLUGINS", variable)

    assert names(plugins) == expected


def test_the_agents_own_come_first_in_their_order(installed):
    assert names([named("z"), "demand", named("a")]) == ["z", "demand", "a", "auto", "bee"]


def test_an_own_plugin_replaces_the_active_one_of_its_name(installed):
    mine = named("auto")
    hooks = assemble([mine], {}, None)

    assert [plugin.name for plugin in hooks.plugins] == ["auto", "bee"]
    assert hooks.plugins[0] is mine
    assert assemble([mine, "-auto"], {}, None).plugins[0] is mine


def test_one_object_may_be_given_twice_and_two_of_one_name_may_not(site):
    mine = named("same")
    assert names([mine, mine]) == ["same"]

    with pytest.raises(PluginError, match="two plugins of this agent are named 'same'"):
        assemble([mine, named("same")], {}, None)


REFUSED = {
    "a text": ("retry", "give a list"),
    "an iterator": (iter(()), "give a list"),
    "a number": ([3], "3 is no plugin"),
    "None": ([None], "None is no plugin"),
    "a class without hooks": ([dict], "<class 'dict'> is no plugin"),
    "a tuple that is no pair": ([("auto", 3)], "a tuple is"),
    "a triple": ([("auto", {}, {})], "a tuple is"),
    "a switch for nothing": (["-autp"], r"switches off 'autp' .*did you mean 'auto'"),
    "an unknown name": (["autp"], r"no plugin 'autp': did you mean 'auto'"),
    "an empty name": ([""], "no plugin ''"),
    "a class without a name": ([type("P", (Mine,), {"name": None})], "its name is None"),
}


@pytest.mark.parametrize(("plugins", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_plugin_is_refused(installed, plugins, message):
    with pytest.raises(PluginError, match=message):
        assemble(plugins, {}, None)


def test_what_is_asked_for_and_switched_off_is_an_error(installed, monkeypatch):
    with pytest.raises(MissingPluginError, match=r"'auto' is switched off by plugins=\['-auto'\]: remove one"):
        assemble(["auto", "-auto"], {}, None)

    monkeypatch.setenv("ROPEWALK_PLUGINS", "-demand")
    with pytest.raises(MissingPluginError, match="'demand' is switched off by ROPEWALK_PLUGINS"):
        assemble(["demand"], {}, None)


@pytest.mark.parametrize(("plugins", "given"), [(["-demand"], {}), (None, {"callback_handler": None})])
def test_a_variable_adds_nothing_that_the_agent_has_switched_off(installed, monkeypatch, site, plugins, given):
    """`ROPEWALK_PLUGINS=console` must not make agents impossible that are silent on purpose."""
    site.plugin("console", on_demand=True)
    monkeypatch.setenv("ROPEWALK_PLUGINS", "demand,console")

    assert names(plugins, given) == [
        name for name in ("demand", "console", "auto", "bee") if name != ("demand" if plugins else "console")
    ]


def test_a_variable_that_adds_and_switches_off_is_an_error(installed, monkeypatch):
    monkeypatch.setenv("ROPEWALK_PLUGINS", "demand,-demand")
    with pytest.raises(MissingPluginError, match="'demand' is switched off by ROPEWALK_PLUGINS"):
        names()


def test_a_variable_may_switch_off_what_is_not_there_with_one_warning(installed, monkeypatch):
    monkeypatch.setenv("ROPEWALK_PLUGINS", "-autp")

    with pytest.warns(RuntimeWarning, match=r"ROPEWALK_PLUGINS switches off 'autp' .*did you mean 'auto'"):
        assert names() == ["auto", "bee"]

    assert names(["demand"]) == ["demand", "auto", "bee"]  # warnings are errors: there is no second one


def test_a_variable_cannot_ask_for_what_is_not_there(installed, monkeypatch):
    monkeypatch.setenv("ROPEWALK_PLUGINS", "memory")

    with pytest.raises(MissingPluginError, match=r"ROPEWALK_PLUGINS=memory needs .*pip install ropewalk-memory"):
        assemble(None, {}, None)


# -- None as a switch ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parameter", "plugin"), [("retry_strategy", "retry"), ("callback_handler", "console")])
def test_none_switches_the_plugin_off(site, parameter, plugin):
    site.plugin(plugin, parameters=[parameter])

    assert names() == [plugin]
    assert names(None, {parameter: None}) == []
    assert names([named(plugin)], {parameter: None}) == [plugin]


def test_none_is_fine_when_the_plugin_is_not_installed(site):
    assert names(None, {"retry_strategy": None, "callback_handler": None}) == []


# -- what is remembered ----------------------------------------------------------------------------------------------


def test_agents_that_ask_for_nothing_of_their_own_share_their_hooks(installed, monkeypatch):
    default = assemble(None, {}, None)

    assert assemble(None, {}, object()) is default
    assert assemble([], {}, None) is default
    assert assemble(["-auto"], {}, None) is assemble(["-auto"], {}, None)
    assert assemble(None, {"callback_handler": None}, None) is assemble(None, {"callback_handler": None}, None)
    monkeypatch.setenv("ROPEWALK_PLUGINS", "none")
    assert assemble(None, {}, None).plugins == ()
    monkeypatch.delenv("ROPEWALK_PLUGINS")
    assert assemble(None, {}, None) is default


def test_a_shared_set_reads_no_entry_points_and_compiles_nothing(installed, monkeypatch):
    default = assemble(None, {}, None)
    for function in ("ropewalk.kits.hooks.activation.Gathering", "ropewalk.kits.hooks.facade.blueprint"):
        monkeypatch.setattr(function, None)

    assert assemble(None, {}, None) is default


def test_refresh_forgets(installed):
    before = assemble(None, {}, None)
    discovery.refresh()

    assert assemble(None, {}, None) is not before


# -- owners ----------------------------------------------------------------------------------------------------------


def test_the_owner_of_a_model_prefix_is_found_without_importing_it(site):
    site.plugin("clouds", on_demand=True, parameters=["model.clouds"])

    assert owner_of("model.clouds") == "clouds"
    assert require_owner("model.clouds", "model='clouds:x'") == "clouds"
    assert owner_of("model.bedrock") is None


def test_a_missing_owner_says_what_to_install(site):
    with pytest.raises(MissingPluginError, match=r"model='bedrock:x' needs .*pip install ropewalk-bedrock"):
        require_owner("model.bedrock", "model='bedrock:x'")


def test_an_unknown_owner_says_what_there_is(site):
    site.plugin("clouds", parameters=["model.clouds"])

    with pytest.raises(PluginError, match=r"model='cloud:x'.*'model\.cloud': installed are clouds"):
        require_owner("model.cloud", "model='cloud:x'")


METHODS = {
    "add_hook": lambda agent: agent.add_hook(print),
    "as_tool": lambda agent: agent.as_tool(),
    "structured_output_async": lambda agent: agent.structured_output(int, "six"),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_method_whose_plugin_is_not_active_names_the_package_that_brings_it_and_no_other(site, method):
    value = "fake_brings:Plugin"
    plugin = {"a-plugin": value}
    site.add("fake-brings", plugins=plugin, on_demand=plugin, parameters={method: value})

    with pytest.raises(MissingPluginError, match="plugin 'a-plugin' is not active: add it") as caught:
        METHODS[method](Agent(model=FakeModel()))

    assert caught.value.distribution == "fake-brings"
    assert caught.value.wanted == f"Agent.{method}()"
