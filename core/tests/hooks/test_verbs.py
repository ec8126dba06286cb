from __future__ import annotations

import asyncio
import contextvars
import functools
import logging

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.hooks import assemble, verbs
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.markers import hookimpl


@pytest.fixture(autouse=True)
def _any_answer(monkeypatch):
    """The calls are looked at here, not what a hook may answer (test_garbage.py)."""
    monkeypatch.setattr("ropewalk.kits.hooks.answers._RULES", {})


def make(name, tier="normal", **hooks):
    """A plugin whose hooks are the given functions, which take no `self`."""
    body = {"name": name, "tier": tier}
    for hook, function in hooks.items():
        body[hook] = hookimpl(_METHODS[hook](function))

    return type("Plugin", (), body)()


def _model(function):
    def provide_model(self, spec, agent):
        return function(spec)

    return provide_model


def _delta(function):
    def on_delta(self, event):
        return function(event)

    return on_delta


def _tools(function):
    def provide_tools(self):
        return function()

    return provide_tools


def _event(function):
    async def on_event(self, event):
        function(event)

    return on_event


def _stop(function):
    async def decide_stop(self, cycle):
        return function(cycle)

    return decide_stop


def _close(function):
    async def on_close(self):
        await function()

    return on_close


def _around(function):
    async def around_tool_call(self, call, call_next):
        return await function(call, call_next)

    return around_tool_call


_METHODS = {
    "provide_model": _model,
    "on_delta": _delta,
    "provide_tools": _tools,
    "on_event": _event,
    "decide_stop": _stop,
    "on_close": _close,
    "around_tool_call": _around,
}


def fail(*_arguments):
    raise ValueError("broken")


async def fail_async(*_arguments):
    raise ValueError("broken")


def notes(error):
    return getattr(error, "__notes__", [])


# -- synchronous -----------------------------------------------------------------------------------------------------


def test_the_first_answer_that_is_not_none_counts_and_later_plugins_are_not_asked():
    asked = []

    def answering(name, answer):
        return make(name, provide_model=lambda spec: asked.append(name) or answer)

    hooks = Hooks.of([answering("a", None), answering("b", 0), answering("c", "C")])

    assert hooks.provide_model("x", None) == 0
    assert asked == ["a", "b"]


def test_all_are_called_in_order():
    seen = []
    hooks = Hooks.of([make(name, on_delta=lambda event, name=name: seen.append((name, event))) for name in "abc"])
    hooks.on_delta("E", None)

    assert seen == [("a", "E"), ("b", "E"), ("c", "E")]


def test_lists_are_joined_and_none_is_no_opinion():
    hooks = Hooks.of(
        [
            make("a", provide_tools=lambda: [1, 2]),
            make("b", provide_tools=lambda: None),
            make("c", provide_tools=lambda: (3,)),
        ]
    )

    assert hooks.provide_tools(None) == [1, 2, 3]


def test_a_list_hook_that_returns_something_else_is_named():
    with pytest.raises(PluginError, match=r"provide_tools of plugin 'a' returned str, not a list .*test_verbs\.py"):
        Hooks.of([make("a", provide_tools=lambda: "tool")]).provide_tools(None)


@pytest.mark.parametrize("hook", ["provide_model", "on_delta"])
def test_an_awaitable_from_a_synchronous_hook_is_refused_and_closed(hook):
    async def answer():
        return 1

    hooks = Hooks.of([make("a", **{hook: lambda _: answer()})])

    with pytest.raises(PluginError, match=f"{hook} of plugin 'a' returned an awaitable"):
        getattr(hooks, hook)("x", None)


# -- errors ----------------------------------------------------------------------------------------------------------


async def test_an_error_reaches_the_caller_with_a_note_and_stops_the_rest():
    seen = []
    hooks = Hooks.of([make("a", on_event=fail), make("b", on_event=seen.append)])

    with pytest.raises(ValueError, match="broken") as caught:
        await hooks.on_event("E", None)

    assert len(notes(caught.value)) == 1
    assert notes(caught.value)[0].startswith("in the hook on_event of the plugin a (")
    assert seen == []


def test_the_note_names_the_distribution_and_its_version(site):
    site.plugin(
        "bad",
        source="""
        from ropewalk.markers import hookimpl

        class Plugin:
            name = "bad"

            @hookimpl
            def on_delta(self):
                raise ValueError("broken")
        """,
    )
    with pytest.raises(ValueError, match="broken") as caught:
        assemble(None, {}, None).on_delta("E", None)

    assert notes(caught.value) == ["in the hook on_delta of the plugin bad (fake-bad 1.0)"]


def test_an_error_object_that_is_raised_twice_has_one_note():
    error = ValueError("kept")

    def raise_it(_):
        raise error

    hooks = Hooks.of([make("a", on_delta=raise_it)])
    for _ in range(2):
        with pytest.raises(ValueError, match="kept"):
            hooks.on_delta("E", None)

    assert len(notes(error)) == 1


async def test_an_observers_error_is_logged_with_its_name_and_stops_nobody(caplog):
    seen = []
    hooks = Hooks.of(
        [
            make("watcher", tier="observer", on_event=fail, on_delta=fail),
            make("other", tier="observer", on_event=seen.append, on_delta=seen.append),
        ]
    )
    with caplog.at_level(logging.ERROR, logger="ropewalk.hooks"):
        await hooks.on_event("E", None)
        hooks.on_delta("D", None)

    assert seen == ["E", "D"]
    assert [record.name for record in caplog.records] == ["ropewalk.hooks"] * 2
    assert "the observer watcher (" in caplog.records[0].message
    assert "on_event" in caplog.records[0].message
    assert caplog.records[0].exc_info[1].args == ("broken",)


@pytest.mark.parametrize("stop", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_what_is_no_exception_passes_even_an_observer(stop):
    def halt(_):
        raise stop

    with pytest.raises(stop):
        await Hooks.of([make("watcher", tier="observer", on_event=halt)]).on_event("E", None)


async def test_the_first_awaited_answer_counts():
    hooks = Hooks.of([make("a", decide_stop=lambda _: None), make("b", decide_stop=str), make("c", decide_stop=fail)])

    assert await hooks.decide_stop(3, None) == "3"


# -- close -----------------------------------------------------------------------------------------------------------


async def test_every_cleanup_runs_and_the_errors_come_together():
    ran = []

    async def note():
        ran.append(1)

    hooks = Hooks.of([make("a", on_close=fail_async), make("b", on_close=note), make("c", on_close=fail_async)])

    with pytest.raises(ExceptionGroup, match="2 of 3 plugins failed in on_close") as caught:
        await hooks.on_close(None)

    assert ran == [1]
    assert ["plugin a" in notes(error)[0] or "plugin c" in notes(error)[0] for error in caught.value.exceptions] == [
        True
    ] * 2


async def test_a_cancelled_cleanup_lets_the_others_run_first(caplog):
    ran = []

    async def halt():
        raise asyncio.CancelledError

    async def note():
        ran.append(1)

    hooks = Hooks.of([make("a", on_close=halt), make("b", on_close=fail_async), make("c", on_close=note)])

    with pytest.raises(asyncio.CancelledError):
        await hooks.on_close(None)

    assert ran == [1]
    assert "gives way to CancelledError" in caplog.text


# -- chains ----------------------------------------------------------------------------------------------------------


async def step(call):
    return f"<{call}>"


async def failing_step(call):
    raise ValueError(call)


def test_without_links_the_step_itself_is_the_chain():
    assert Hooks.of([]).around_tool_call(step, None) is step


async def test_the_first_plugin_is_the_outermost():
    def wrap(name):
        async def around(call, call_next):
            return f"{name}({await call_next(f'{call}{name}')})"

        return make(name, around_tool_call=around)

    chain = Hooks.of([wrap("a"), wrap("b")]).around_tool_call(step, None)

    assert await chain("x") == "a(b(<xab>))"
    assert await chain("y") == "a(b(<yab>))"


async def test_a_link_may_answer_without_calling_on_or_call_on_twice():
    calls = []

    async def counted(call):
        calls.append(call)
        return call

    async def twice(call, call_next):
        return [await call_next(call), await call_next(call)]

    async def deny(call, call_next):
        return "denied"

    assert await Hooks.of([make("a", around_tool_call=twice)]).around_tool_call(counted, None)(1) == [1, 1]
    assert await Hooks.of([make("a", around_tool_call=deny)]).around_tool_call(counted, None)(2) == "denied"
    assert calls == [1, 1]


async def passing(call, call_next):
    return await call_next(call)


@pytest.mark.parametrize("inner", [failing_step, functools.partial(failing_step)], ids=["function", "partial"])
async def test_an_error_of_the_step_is_not_blamed_on_a_plugin(inner):
    chain = Hooks.of([make("a", around_tool_call=passing)]).around_tool_call(inner, None)

    with pytest.raises(ValueError, match="x") as caught:
        await chain("x")

    assert notes(caught.value) == []


class Before:
    name = "before"

    @hookimpl
    async def around_tool_call(self, call, call_next):
        if call == "before":
            raise ValueError(call)

        return await call_next(call)


class After:
    name = "after"

    @hookimpl
    async def around_tool_call(self, call_next, call):
        outcome = await call_next(call)
        if call == "after":
            self.helper()

        return outcome

    def helper(self):
        raise ValueError("deep")


class Outer:
    name = "outer"

    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        try:
            return await call_next(call)
        except ValueError:
            if call == "translated":
                raise TypeError("translated") from None

            raise


@pytest.mark.parametrize(("call", "culprit"), [("before", "before"), ("after", "after"), ("translated", "outer")])
async def test_an_error_is_blamed_on_the_link_in_which_it_arose(call, culprit):
    async def inner(call):
        if call == "translated":
            raise ValueError(call)

        return call

    chain = Hooks.of([Outer(), Before(), After()]).around_tool_call(inner, None)

    with pytest.raises((ValueError, TypeError)) as caught:
        await chain(call)

    [note] = notes(caught.value)
    assert note.startswith(f"in the hook around_tool_call of the plugin {culprit} (")


async def test_a_chain_that_returns_none_names_its_plugins():
    async def forgets(call, call_next):
        await call_next(call)

    chain = Hooks.of([make("a", around_tool_call=forgets)]).around_tool_call(step, None)

    with pytest.raises(PluginError, match=r"around_tool_call returned None \(a \[.*return await call_next"):
        await chain("x")


async def test_cancellation_passes_a_chain_untouched():
    async def halt(call):
        raise asyncio.CancelledError

    chain = Hooks.of([make("a", around_tool_call=passing)]).around_tool_call(halt, None)

    with pytest.raises(asyncio.CancelledError) as caught:
        await chain("x")

    assert notes(caught.value) == []


async def test_a_chain_keeps_context_variables():
    variable = contextvars.ContextVar("variable", default="unset")

    async def around(call, call_next):
        variable.set("set")
        return await call_next(call)

    async def read(call):
        return variable.get()

    assert await Hooks.of([make("a", around_tool_call=around)]).around_tool_call(read, None)("x") == "set"


def test_the_verbs_themselves_do_nothing_without_links():
    assert verbs.call((), (), ()) == []
    assert verbs.call_first((), (), ()) is None
