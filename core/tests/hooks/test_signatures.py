from __future__ import annotations

import functools
import inspect

import pluggy
import pytest

from ropewalk.kits.hooks.signatures import HOOKS, IMPL_MARK, SPEC_MARK, bind, code_of, mark_of
from ropewalk.markers import PROJECT, hookimpl, hookspec
from ropewalk.specs import SPECS

CHAIN = HOOKS["around_tool_call"]


def test_every_specification_is_known_with_its_arguments_and_kind():
    assert HOOKS["on_delta"].arguments == ("event", "agent")
    assert not HOOKS["on_delta"].is_async
    assert HOOKS["on_event"].is_async
    assert CHAIN.arguments == ("call", "call_next", "agent")
    assert CHAIN.is_chain
    assert HOOKS["provide_commands"].arguments == ()


def test_the_table_agrees_with_pluggy_and_with_inspect():
    manager = pluggy.PluginManager(PROJECT)
    for group in SPECS:
        manager.add_hookspecs(group)
        for name, function in vars(group).items():
            if manager.parse_hookspec_opts(group, name) is not None:
                assert HOOKS[name].arguments == tuple(inspect.signature(function).parameters)[1:]
                assert HOOKS[name].is_async == inspect.iscoroutinefunction(function)

    assert set(vars(manager.hook)) >= set(HOOKS)


def test_the_marks_are_where_pluggy_puts_them():
    class Plugin:
        @hookimpl(tryfirst=True)
        def on_delta(self): ...

        @hookspec
        def spec(self): ...

    options = pluggy.PluginManager(PROJECT).parse_hookimpl_opts(Plugin(), "on_delta")
    assert getattr(Plugin.on_delta, IMPL_MARK) == options == mark_of(Plugin.on_delta)
    assert hasattr(Plugin.spec, SPEC_MARK)


def test_an_implementation_with_all_arguments_in_order_is_called_as_it_is():
    def full(self, call, call_next, agent): ...

    assert bind(full, ("call", "call_next", "agent"), CHAIN) is full


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), []),
        (("agent",), ["A"]),
        (("call",), ["C"]),
        (("call_next", "call"), ["N", "C"]),
        (("agent", "call", "call_next"), ["A", "C", "N"]),
    ],
)
def test_any_subset_of_the_arguments_is_picked_by_name(names, expected):
    def takes(plugin, *arguments):
        return [plugin, *arguments]

    assert bind(takes, names, CHAIN)("P", "C", "N", "A") == ["P", *expected]


def test_the_code_behind_methods_partials_and_decorators_is_found():
    def plain(): ...

    @functools.wraps(plain)
    def decorated(): ...

    class Callable:
        def __call__(self): ...

    assert code_of(decorated) is plain.__code__
    assert code_of(functools.partial(plain)) is plain.__code__
    assert code_of(Callable()) is Callable.__call__.__code__
    assert code_of(len) is None
