from __future__ import annotations

import functools
import math
import re
import types

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.refusals import OBSERVABLE, carries_hooks
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.markers import API_VERSION, hookimpl
from ropewalk.specs import ControlSpecs


def plugin(**body):
    return type("Plugin", (), {"name": "mine", **body})()


@hookimpl
async def good(self, event): ...


@hookimpl
def on_dleta(self, event): ...


@hookimpl
def sync_of_async(self, event): ...


@hookimpl
async def async_of_sync(self, event): ...


@hookimpl(wrapper=True)
def wrapper(self, event):
    yield


@hookimpl(hookwrapper=True)
def hookwrapper(self, event):
    yield


@hookimpl
def generator(self, event):
    yield


@hookimpl
async def async_generator(self, event):
    yield


@hookimpl
async def keyword_only(self, *, event): ...


@hookimpl
async def star(self, *arguments): ...


@hookimpl
async def star_star(self, **arguments): ...


@hookimpl
async def unknown_argument(self, evnt): ...


@hookimpl
async def unknown_default(self, event, verbose=False): ...


@hookimpl
async def no_self(event): ...


@hookimpl
async def nothing(): ...


@hookimpl(specname="on_evnt")
async def specname(self, event): ...


async def unmarked(self, event): ...


def on_instance():
    made = plugin(on_event=good)
    made.on_delta = lambda event: None
    return made


def marked_on_instance():
    made = plugin(on_event=good)
    made.extra = hookimpl(lambda self, event: None)
    return made


class Marked:
    name = "mine"

    @hookimpl(specname="on_event")
    async def observe(self, event): ...


class UnmarkedOverride(Marked):
    async def observe(self, event): ...


CASES = {
    "an unknown hook": (lambda: plugin(on_dleta=on_dleta), "no hook 'on_dleta'", "did you mean 'on_delta'"),
    "a specname that points nowhere": (lambda: plugin(see=specname), "no hook 'on_evnt'", "did you mean 'on_event'"),
    "an async implementation of a sync hook": (
        lambda: plugin(on_delta=async_of_sync),
        "on_delta is async and the hook is not awaited",
        "write `def on_delta(self, event, agent)`",
    ),
    "a sync implementation of an async hook": (
        lambda: plugin(on_event=sync_of_async),
        "on_event is not async and the hook is awaited",
        "write `async def on_event(self, event, agent)`",
    ),
    "a wrapper": (lambda: plugin(on_delta=wrapper), "pluggy wrapper", "await call_next(call)"),
    "an old wrapper": (lambda: plugin(on_delta=hookwrapper), "pluggy wrapper", "await call_next(call)"),
    "a generator": (lambda: plugin(on_delta=generator), "on_delta yields", "return its answer"),
    "an async generator": (lambda: plugin(on_event=async_generator), "on_event yields", "return its answer"),
    "a keyword-only parameter": (lambda: plugin(on_event=keyword_only), "keyword-only parameter 'event'", "by name"),
    "a star parameter": (lambda: plugin(on_event=star), "star positional parameter 'arguments'", "by name"),
    "a double star parameter": (lambda: plugin(on_event=star_star), "star keyword parameter 'arguments'", "by name"),
    "an unknown argument": (lambda: plugin(on_event=unknown_argument), "no argument 'evnt'", "did you mean 'event'"),
    "an unknown argument with a default": (
        lambda: plugin(on_event=unknown_default),
        "no argument 'verbose'",
        "by name",
    ),
    "a method without self": (lambda: plugin(on_event=no_self), "takes no `self`", "async def on_event(self"),
    "a method without parameters": (lambda: plugin(on_event=nothing), "takes no `self`", "async def on_event(self"),
    "a static method": (lambda: plugin(on_event=staticmethod(good)), "is a staticmethod", "plain methods"),
    "a marked static method": (
        lambda: plugin(on_event=hookimpl(staticmethod(unmarked))),
        "staticmethod",
        "plain methods",
    ),
    "a class method": (lambda: plugin(on_event=classmethod(good)), "is a classmethod", "plain methods"),
    "a partial method": (
        lambda: plugin(on_event=hookimpl(functools.partialmethod(unmarked))),
        "is a partialmethod",
        "plain methods",
    ),
    "a hook set on the instance": (on_instance, "on_delta is set on the instance", "define it as a method"),
    "a marked function on the instance": (marked_on_instance, "extra is set on the instance", "define it as a method"),
    "an unmarked method named like a hook": (
        lambda: plugin(on_event=unmarked, on_close=good),
        "on_event is named like a hook and is not marked",
        "put @hookimpl above it",
    ),
    "an unmarked override": (UnmarkedOverride, "observe overrides a hook and is not marked", "put @hookimpl above it"),
    "an api of another version": (
        lambda: plugin(on_event=good, api=API_VERSION + 1),
        f"made for hook API {API_VERSION + 1}",
        "install versions",
    ),
    "an api range that ended": (
        lambda: plugin(on_event=good, api=(0, API_VERSION - 1)),
        "made for hook API",
        "install",
    ),
    "an api that is no number": (lambda: plugin(on_event=good, api="1.0"), "its api is '1.0'", "api = 1"),
    "a missing name": (lambda: plugin(name=None, on_event=good), "its name is None", 'name = "mine"'),
    "a name with a space": (lambda: plugin(name="my plugin", on_event=good), "its name is 'my plugin'", "letters"),
    "a name that is a switch": (lambda: plugin(name="-mine", on_event=good), "its name is '-mine'", "letters"),
    "a bad tier": (lambda: plugin(on_event=good, tier="observers"), "its tier is 'observers'", "'observer'"),
    "a tier that is a list": (lambda: plugin(on_event=good, tier=["normal"]), "its tier is ['normal']", "'observer'"),
    "a name that is a list": (lambda: plugin(on_event=good, name=["mine"]), "its name is ['mine']", "letters"),
    "a bad order": (lambda: plugin(on_event=good, order="first"), "its order 'first' is no number", "order = 0"),
    "an unknown context reason": (
        lambda: plugin(on_event=good, context_reasons={"before_lunch"}),
        "its context_reasons are {'before_lunch'}",
        "name some of after_invocation, after_tools, before_model, overflow",
    ),
    "context reasons that are a text": (
        lambda: plugin(on_event=good, context_reasons="overflow"),
        "its context_reasons are 'overflow'",
        "name some of",
    ),
    "an order that is not a number": (lambda: plugin(on_event=good, order=math.nan), "its order nan", "order = 0"),
    "an observer in a chain": (
        lambda: plugin(tier="observer", around_tool_call=hookimpl(unmarked)),
        "an observer cannot implement",
        'tier = "normal"',
    ),
    "a module": (lambda: types.ModuleType("plug"), "module plug was given as a plugin", "into a class"),
    "an object without hooks": (plugin, "is no plugin", "@hookimpl methods"),
    "a function": (lambda: unmarked, "is no plugin", "@hookimpl methods"),
}


async def _observer_chain(self, call, call_next): ...


CASES["an observer in a chain"] = (
    lambda: plugin(tier="observer", around_tool_call=hookimpl(_observer_chain)),
    "an observer cannot implement around_tool_call",
    'tier = "normal"',
)


@pytest.mark.parametrize(("make", "what", "fix"), CASES.values(), ids=CASES)
def test_it_is_refused_with_the_fix(make, what, fix):
    with pytest.raises(PluginError) as caught:
        Hooks.of([make()])

    assert what in str(caught.value)
    assert fix in str(caught.value)


def test_a_refusal_names_plugin_class_and_place():
    with pytest.raises(PluginError) as caught:
        Hooks.of([plugin(on_event=unknown_argument)])

    line = unknown_argument.__code__.co_firstlineno
    assert "plugin 'mine'" in str(caught.value)
    assert ".Plugin)" in str(caught.value)
    assert re.search(rf"test_refusals\.py:{line}\]", str(caught.value))


@pytest.mark.parametrize("hook", sorted(set(HOOKS) - OBSERVABLE))
def test_an_observer_gets_no_place_where_it_could_change_a_run(hook):
    spec = HOOKS[hook]
    source = f"{'async ' if spec.is_async else ''}def {hook}(self, {', '.join(spec.arguments)}): ..."
    namespace: dict[str, object] = {}
    exec(source, namespace)

    with pytest.raises(PluginError, match="an observer cannot implement"):
        Hooks.of([plugin(tier="observer", **{hook: hookimpl(namespace[hook])})])


@pytest.mark.parametrize(
    "make",
    [
        lambda: plugin(on_event=good, api=(API_VERSION, API_VERSION + 3)),
        lambda: plugin(on_event=good, api=API_VERSION),
        lambda: plugin(on_event=good, other=hookimpl(optionalhook=True)(lambda self: None)),
        lambda: plugin(on_event=good, on_deltas=lambda self: None),
        lambda: plugin(on_event=good, tier="observer"),
    ],
    ids=["an api range", "an api version", "an optional hook", "a method of a near name", "an observer of events"],
)
def test_it_is_accepted(make):
    assert len(Hooks.of([make()]).plan.on_event) == 1


def test_the_specifications_may_be_inherited():
    class Plugin(ControlSpecs):
        name = "typed"

        @hookimpl
        def check_call(self, options, agent): ...

    hooks = Hooks.of([Plugin()])
    assert len(hooks.plan.check_call) == 1
    assert hooks.plan.admit == ()


def test_a_decorated_implementation_is_bound_by_what_it_wraps():
    def logged(function):
        @functools.wraps(function)
        async def inner(*arguments):
            return await function(*arguments)

        return inner

    class Plugin:
        name = "decorated"

        @hookimpl
        @logged
        async def decide_stop(self, agent, cycle): ...

    assert len(Hooks.of([Plugin()]).plan.decide_stop) == 1


def test_an_object_that_answers_to_every_attribute_carries_no_hooks():
    class Anything:
        def __getattr__(self, name):
            return {"tryfirst": True}

    assert not carries_hooks(type("Holder", (), {"helper": Anything()}))
