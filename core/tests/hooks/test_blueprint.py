from __future__ import annotations

import dataclasses
import gc
import random
import weakref

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.blueprint import PLANS, Plan, blueprint, key_of
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.markers import hookimpl


def make(name, *, order=0, tier="normal", first=False, last=False):
    class Plugin:
        @hookimpl(tryfirst=first, trylast=last)
        async def on_event(self, event): ...

    Plugin.name, Plugin.order, Plugin.tier = name, order, tier
    return Plugin()


def names(hooks, hook="on_event"):
    return [link.plugin_name for link in getattr(hooks.plan, hook)]


def test_a_plan_has_exactly_the_specified_hooks():
    assert {field.name for field in dataclasses.fields(Plan)} == set(HOOKS)


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ([make("a"), make("b")], ["a", "b"]),
        ([make("a"), make("b", order=-1)], ["b", "a"]),
        ([make("a", order=2), make("b", order=1.5), make("c")], ["c", "b", "a"]),
        (
            [make("watch", tier="observer"), make("a", order=9), make("law", tier="policy", order=99)],
            ["law", "a", "watch"],
        ),
        ([make("a"), make("b", first=True)], ["b", "a"]),
        ([make("a", last=True), make("b")], ["b", "a"]),
        ([make("a", first=True), make("b", first=True)], ["a", "b"]),
        ([make("a", last=True), make("b", last=True), make("c")], ["c", "a", "b"]),
        ([make("a", order=-1), make("b", first=True)], ["a", "b"]),
        ([make("law", tier="policy", last=True), make("a", first=True)], ["law", "a"]),
    ],
)
def test_links_are_ordered_by_tier_order_and_position(plugins, expected):
    assert names(Hooks.of(plugins)) == expected


def test_the_order_of_an_instance_overrides_that_of_its_class():
    first, second = make("a"), make("b")
    second.order = -5

    assert names(Hooks.of([first, second])) == ["b", "a"]


def test_any_shuffle_with_distinct_orders_gives_one_result():
    plugins = [make(f"p{index}", order=index, first=index % 2, last=index % 3 == 0) for index in range(8)]
    expected = names(Hooks.of(plugins))
    random.Random(7).shuffle(plugins)

    assert names(Hooks.of(plugins)) == expected == [f"p{index}" for index in range(8)]


def test_a_link_knows_its_place_in_the_agents_plugins():
    hooks = Hooks.of([make("late", order=1), make("early")])

    assert [(link.plugin_name, link.index, link.hook) for link in hooks.plan.on_event] == [
        ("early", 1, "on_event"),
        ("late", 0, "on_event"),
    ]
    assert [hooks.plugins[link.index].name for link in hooks.plan.on_event] == ["early", "late"]


def test_plugins_of_the_same_kinds_share_one_plan():
    kind = type(make("a"))

    assert Hooks.of([kind()]).plan is Hooks.of([kind()]).plan


def test_two_instances_of_one_class_may_have_names_of_their_own():
    kind = type(make("a"))
    left, right = kind(), kind()
    left.name, right.name = "left", "right"

    assert names(Hooks.of([left, right])) == ["left", "right"]


def test_a_plan_keeps_no_plugin_alive():
    plugin = make("gone")
    hooks = Hooks.of([plugin])
    watch = weakref.ref(plugin)
    del hooks, plugin
    gc.collect()

    assert watch() is None


def test_the_number_of_kept_plans_is_bounded():
    assert blueprint.cache_info().maxsize == PLANS


def test_one_method_may_stand_for_a_hook_under_another_name():
    class Plugin:
        name = "two"

        @hookimpl(specname="on_event")
        async def first(self, event): ...

        @hookimpl
        async def on_event(self, event): ...

    assert sorted(link.function.__name__ for link in Hooks.of([Plugin()]).plan.on_event) == ["first", "on_event"]


def test_a_refused_plugin_leaves_nothing_behind():
    class Bad:
        name = "bad"

        @hookimpl
        async def on_event(self, event): ...

        @hookimpl
        def on_dleta(self, event): ...

    for _ in range(2):
        with pytest.raises(PluginError, match="on_dleta"):
            blueprint((key_of(Bad()),))


def test_an_inherited_hook_is_called_and_none_switches_it_off():
    base = type(make("base"))

    class Child(base):
        name = "child"

    class Silent(base):
        name = "silent"
        on_event = None

    assert names(Hooks.of([Child(), Silent()])) == ["child"]


def test_a_marked_override_replaces_the_inherited_one():
    base = type(make("base"))

    class Child(base):
        name = "child"

        @hookimpl
        async def on_event(self, event, agent): ...

    [link] = Hooks.of([Child()]).plan.on_event
    assert link.function is Child.on_event
