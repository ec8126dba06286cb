from __future__ import annotations

import inspect
import warnings

import pytest

from ropewalk.kits.hooks import deprecations
from ropewalk.kits.hooks.deprecations import DEPRECATED, Deprecation
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.markers import API_VERSION, hookimpl

NEXT = API_VERSION + 1


def plugin(**body):
    return type("Plugin", (), {"name": "mine", **body})()


@hookimpl
async def on_event(self, event): ...


@hookimpl
def check_call(self, agent, options): ...


@pytest.fixture
def deprecate(monkeypatch):
    """Marks parts of the hook API as deprecated: `deprecate(on_event="write on_thing")`, `check_call__agent=...`."""

    def mark(**fixes):
        entries = {}
        for key, fix in fixes.items():
            hook, _, argument = key.partition("__")
            entries[hook, argument or None] = Deprecation(NEXT, fix)

        monkeypatch.setattr(deprecations, "DEPRECATED", entries)

    return mark


def told_about(*plugins):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Hooks.of(plugins)

    assert all(each.category is DeprecationWarning for each in caught)
    return caught


def test_what_is_deprecated_exists_and_has_an_end_ahead():
    """Whoever raises the version of the hook API takes out what was announced for it."""
    for (hook, argument), deprecation in DEPRECATED.items():
        assert argument is None or argument in HOOKS[hook].arguments
        assert deprecation.until > API_VERSION


def test_a_hook_that_is_deprecated_is_warned_about_with_plugin_distribution_and_fix(site, deprecate):
    site.plugin("one")
    deprecate(on_event="write on_thing(self, thing)")
    import fake_one

    (caught,) = told_about(fake_one.Plugin())
    assert str(caught.message) == (
        f"plugin 'one' (fake-one 1.0): the hook on_event is deprecated, and gone in hook API {NEXT} "
        f"[{fake_one.__file__}:8]. To fix it: write on_thing(self, thing)"
    )
    assert (caught.filename, caught.lineno) == (fake_one.__file__, 8)


def test_an_argument_that_is_deprecated_is_warned_about_where_it_is_taken(deprecate):
    deprecate(check_call__agent="take it from options")
    first_line = inspect.getsourcelines(check_call)[1]

    (caught,) = told_about(plugin(check_call=check_call))
    assert "the argument 'agent' of the hook check_call is deprecated" in str(caught.message)
    assert str(caught.message).endswith("To fix it: take it from options")
    assert (caught.filename, caught.lineno) == (__file__, first_line)
    assert told_about(plugin(check_call=hookimpl(lambda self, options: None))) == []


def test_each_class_is_warned_about_once_for_each_part(deprecate):
    deprecate(on_event="a", check_call="b", check_call__agent="c")
    one, other = plugin(on_event=on_event, check_call=check_call), plugin(on_event=on_event)

    assert [str(each.message)[-1] for each in told_about(one)] == ["a", "b", "c"]
    assert told_about(one, other)[0].message.args[0].endswith("a")
    assert told_about(other, one) == []


def test_a_deprecated_hook_is_called_as_before(deprecate):
    deprecate(provide_method="write something else")

    @hookimpl
    def provide_method(self, name):
        return name.upper

    with pytest.warns(DeprecationWarning, match="the hook provide_method is deprecated"):
        hooks = Hooks.of([plugin(provide_method=provide_method)])

    assert hooks.provide_method("a", None)() == "A"


def test_a_warning_that_is_an_error_stops_each_agent_and_not_only_the_first(deprecate):
    deprecate(on_event="write on_thing")
    mine = plugin(on_event=on_event)
    for _ in range(2):
        with pytest.raises(DeprecationWarning, match="write on_thing"):
            Hooks.of([mine])


def test_a_decorated_implementation_is_looked_at_beneath_its_decorator(deprecate):
    import functools

    def logged(function):
        @functools.wraps(function)
        def inner(*arguments):
            return function(*arguments)

        return inner

    deprecate(check_call__agent="take it from options")
    (caught,) = told_about(plugin(check_call=hookimpl(logged(lambda self, agent: None))))
    assert "the argument 'agent'" in str(caught.message)


def test_nothing_is_said_about_what_is_not_deprecated(deprecate):
    deprecate(on_delta="x", on_event__agent="y")
    assert told_about(plugin(on_event=on_event, check_call=check_call)) == []
