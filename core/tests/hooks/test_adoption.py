from __future__ import annotations

import pytest

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import assemble
from ropewalk.kits.hooks.parameters import REQUIRED_HOOKS
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.markers import hookimpl

OWNER = """
from ropewalk.markers import hookimpl

asked = []

class Handler:
    name = "{name}"

    def __init__(self, value):
        self.value = value

    @hookimpl
    def on_delta(self): ...

class Plugin:
    name = "{name}"

    @hookimpl
    def adopt(self, parameter, value, agent):
        asked.append((parameter, value, agent))
        {answer}
"""


class Strategy:
    name = "my-strategy"

    @hookimpl
    async def decide_retry(self, failure): ...


class Listener:
    name = "listener"

    @hookimpl
    async def on_event(self, event): ...


def owner(site, name, answer, *, parameters, on_demand=False):
    site.plugin(name, on_demand=on_demand, parameters=parameters, source=OWNER.format(name=name, answer=answer))


def names(plugins=None, **given):
    return [plugin.name for plugin in assemble(plugins, given, None).plugins]


# -- values that are plugins -----------------------------------------------------------------------------------------


def test_a_value_with_hooks_is_the_plugin_and_needs_no_owner(site):
    assert names(retry_strategy=Strategy()) == ["my-strategy"]


def test_which_plugin_was_given_for_a_parameter_is_known(site):
    hooks = assemble(None, {"retry_strategy": Strategy()}, None)
    assert hooks.given == {"retry_strategy": "my-strategy"}
    assert hooks.with_plugin(Listener()).given == {"retry_strategy": "my-strategy"}
    assert assemble([Strategy()], {}, None).given == {}


def test_a_value_with_hooks_takes_the_place_of_the_owner(site):
    site.plugin("retry", parameters=["retry_strategy"])
    site.plugin("other")
    strategy = Strategy()

    assert assemble(None, {"retry_strategy": strategy}, None).plugins[0] is strategy
    assert names(retry_strategy=strategy) == ["my-strategy", "other"]
    assert names(["retry"], retry_strategy=strategy) == ["retry", "my-strategy", "other"]


def test_a_value_and_a_plugin_of_one_name_are_refused_unless_they_are_one_object(site):
    strategy = Strategy()
    assert names([strategy], retry_strategy=strategy) == ["my-strategy"]

    with pytest.raises(PluginError, match=r"two plugins of this agent are named 'my-strategy'.* retry_strategy="):
        names([Strategy()], retry_strategy=strategy)


class Watcher:
    name = "watcher"

    @hookimpl
    def on_agent_ready(self): ...

    @hookimpl
    def adopt(self, parameter, value): ...


@pytest.mark.parametrize("parameter", REQUIRED_HOOKS)
def test_a_plugin_that_cannot_do_the_work_of_a_parameter_is_refused(site, parameter):
    site.plugin("owner", parameters=[parameter])
    what = f"has no hook {' or '.join(REQUIRED_HOOKS[parameter])}, .* To fix it: .*plugins="

    with pytest.raises(
        ValueError, match=rf"Agent\({parameter}=\.\.\.\): plugin 'watcher' \(.*\.Watcher\) {what}"
    ) as caught:
        names(**{parameter: Watcher()})

    assert isinstance(caught.value, PluginError)


@pytest.mark.parametrize(
    ("parameter", "hook"), [(key, hook) for key, hooks in REQUIRED_HOOKS.items() for hook in hooks]
)
def test_any_plugin_that_can_do_the_work_of_a_parameter_is_taken(site, parameter, hook):
    spec = HOOKS[hook]
    source = f"{'async ' if spec.is_async else ''}def {hook}(self, {', '.join(spec.arguments)}): ..."
    namespace: dict[str, object] = {}
    exec(source, namespace)
    value = type("Able", (), {"name": "able", hook: hookimpl(namespace[hook])})()

    assert names(**{parameter: value}) == ["able"]


def test_a_parameter_without_a_hook_of_its_own_takes_any_plugin(site):
    assert names(memory_manager=Watcher()) == ["watcher"]


# -- values that the owner adopts ------------------------------------------------------------------------------------


def test_the_owner_is_asked_and_becomes_active(site):
    owner(site, "limits", "return []", parameters=["limits"], on_demand=True)
    agent = object()

    assert [plugin.name for plugin in assemble(None, {"limits": {"turns": 1}}, agent).plugins] == ["limits"]
    import fake_limits

    assert fake_limits.asked == [("limits", {"turns": 1}, agent)]


def test_an_answer_of_the_owners_name_replaces_the_owner(site):
    owner(site, "console", "return Handler(value)", parameters=["callback_handler"])
    [plugin] = assemble(None, {"callback_handler": print}, None).plugins

    assert plugin.value is print
    [plugin] = assemble(["console"], {"callback_handler": print}, None).plugins
    assert plugin.value is print


def test_an_answer_does_not_replace_an_own_plugin(site):
    owner(site, "console", "return Handler(value)", parameters=["callback_handler"])
    strategy = Strategy()
    strategy.name = "console"

    with pytest.raises(PluginError, match=r"plugin 'console' owns .* and has no hook `adopt`"):
        assemble([strategy], {"callback_handler": print}, None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("return 'extra'", ["extra", "auto"]),
        ("return ('sized', {'size': 4})", ["sized", "auto"]),
        ("return ['extra', ('sized', {'size': 4}), Handler(1)]", ["auto", "extra", "sized"]),
        ("return [['extra'], ('extra', 'sized')]", ["extra", "sized", "auto"]),
        ("return self", ["auto"]),
        ("return 'auto'", ["auto"]),
        ("return type('Made', (Handler,), {'name': 'made', '__init__': lambda self: None})", ["made", "auto"]),
    ],
)
def test_answers_are_plugins_names_pairs_and_lists_of_them(site, answer, expected):
    owner(site, "auto", answer, parameters=["context_manager"])
    site.plugin("extra", on_demand=True)
    _sized(site)

    assert names(context_manager="auto") == expected


def _sized(site, *, on_demand=True):
    site.plugin(
        "sized",
        on_demand=on_demand,
        source="""
        from pydantic import BaseModel
        from ropewalk.markers import hookimpl

        class Plugin:
            name = "sized"

            class Config(BaseModel):
                size: int = 1

            def __init__(self, config):
                self.size = config.size

            @hookimpl
            def on_delta(self): ...
        """,
    )


def test_a_pair_configures_the_plugin_and_replaces_the_active_one(site):
    owner(site, "auto", "return ('sized', {'size': 4})", parameters=["context_manager"], on_demand=True)
    _sized(site, on_demand=False)

    assert [plugin.size for plugin in assemble(None, {}, None).plugins] == [1]
    assert [
        plugin.size for plugin in assemble(None, {"context_manager": "auto"}, None).plugins if plugin.name == "sized"
    ] == [4]


def test_a_plugin_of_the_users_own_wins_over_a_pair(site):
    owner(site, "auto", "return ('sized', {'size': 4})", parameters=["context_manager"], on_demand=True)
    _sized(site)
    hooks = assemble([("sized", {"size": 9})], {"context_manager": "auto"}, None)

    assert [plugin.size for plugin in hooks.plugins if plugin.name == "sized"] == [9]


def test_a_value_with_hooks_wins_over_a_pair_whatever_the_order(site):
    owner(site, "auto", "return ('my-strategy', {})", parameters=["context_manager"], on_demand=True)
    strategy = Strategy()

    assert names(context_manager="auto", retry_strategy=strategy) == ["my-strategy", "auto"]


def test_two_answers_with_different_options_are_refused(site):
    owner(site, "auto", "return ('sized', {'size': 4})", parameters=["context_manager"])
    owner(site, "more", "return ('sized', {'size': 5})", parameters=["memory_manager"])
    _sized(site)

    with pytest.raises(PluginError, match=r"Agent\(context_manager=\.\.\.\) and Agent\(memory_manager=.* 'sized'"):
        names(context_manager="auto", memory_manager=1)


def test_of_several_owners_the_first_with_an_answer_counts_and_only_it_becomes_active(site):
    answer = "return [] if value == '{}' else None"
    owner(site, "a-auto", answer.format("auto"), parameters=["context_manager"], on_demand=True)
    owner(site, "b-agentic", answer.format("agentic"), parameters=["context_manager"], on_demand=True)

    assert names(context_manager="auto") == ["a-auto"]
    assert names(context_manager="agentic") == ["b-agentic"]
    with pytest.raises(ValueError, match=r"'a-auto' and 'b-agentic' cannot take a value of type builtins.str"):
        names(context_manager="other")


def test_an_error_of_adopt_reaches_the_caller_with_a_note(site):
    owner(site, "limits", "raise TypeError('turns must be positive')", parameters=["limits"])

    with pytest.raises(TypeError, match="turns must be positive") as caught:
        names(limits={"turns": -1})

    assert caught.value.__notes__ == ["in the hook adopt of the plugin limits (fake-limits 1.0)"]


# -- what does not work ----------------------------------------------------------------------------------------------


def test_a_parameter_whose_owner_is_not_installed_says_what_to_install(site):
    with pytest.raises(MissingPluginError) as caught:
        names(session_manager=object())

    assert str(caught.value) == (
        "Agent(session_manager=...) needs the plugin ropewalk-session-file: pip install ropewalk-session-file"
    )


def test_a_value_with_an_owner_of_its_own_says_so(site):
    owner(site, "context-auto", "return [] if value == 'auto' else None", parameters=["context_manager"])

    with pytest.raises(MissingPluginError, match="pip install ropewalk-context-agentic"):
        names(context_manager="agentic")


def test_a_parameter_that_nobody_knows_is_refused(site):
    with pytest.raises(PluginError, match=r"Agent\(colour=\.\.\.\): no installed plugin owns"):
        names(colour="red")


@pytest.mark.parametrize("by", ["plugins", "environment"])
def test_a_parameter_whose_owner_is_switched_off_says_so(site, monkeypatch, by):
    owner(site, "limits", "return []", parameters=["limits"])
    if by == "environment":
        monkeypatch.setenv("ROPEWALK_PLUGINS", "-limits")

    with pytest.raises(MissingPluginError, match=r"Agent\(limits=.* 'limits' is switched off by") as caught:
        names(["-limits"] if by == "plugins" else None, limits={})

    assert caught.value.distribution == "fake-limits"


def test_a_value_that_the_owner_does_not_understand_is_refused_with_its_type(site):
    owner(site, "limits", "return None", parameters=["limits"])

    with pytest.raises(
        PluginError, match=r"Agent\(limits=.* 'limits' cannot take a value of type builtins.complex"
    ) as caught:
        names(limits=3j)

    assert isinstance(caught.value, ValueError)


def test_an_owner_without_adopt_is_refused(site):
    site.plugin("limits", parameters=["limits"])

    with pytest.raises(PluginError, match=r"plugin 'limits' owns .* and has no hook `adopt`"):
        names(limits={})


@pytest.mark.parametrize("answer", ["return 3", "return [None]", "return {'sized': {}}", "return int"])
def test_an_answer_that_is_no_plugin_is_refused(site, answer):
    owner(site, "limits", answer, parameters=["limits"])

    with pytest.raises(PluginError, match=r"plugin 'limits' answered Agent\(limits="):
        names(limits={})


def test_an_answer_that_contains_itself_is_refused(site):
    owner(site, "limits", "answer = []; answer.append(answer); return answer", parameters=["limits"])

    with pytest.raises(PluginError, match="nested in itself"):
        names(limits={})


def test_an_adoption_that_builds_an_agent_with_its_own_parameter_is_a_circle(site):
    answer = "from ropewalk.kits.hooks import assemble; assemble(None, {parameter: value}, None)"
    owner(site, "limits", answer, parameters=["limits"])

    with pytest.raises(PluginError, match=r"adoption goes in a circle .*limits -> limits"):
        names(limits={})
