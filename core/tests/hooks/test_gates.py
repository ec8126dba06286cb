from __future__ import annotations

import asyncio

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.markers import hookimpl


def intervener(name, body, **attributes):
    return type("Plugin", (), {"name": name, "intervene": hookimpl(body), **attributes})()


def noting(name, log, answer=None, **attributes):
    """A plugin that notes that it was asked, and with what."""

    async def intervene(self, moment, subject):
        log.append((name, subject))
        return answer(subject) if answer else None

    return intervener(name, intervene, **attributes)


def names(log):
    return [name for name, _ in log]


async def pass_through(plugins, moment="before_tool_call", subject="subject", **options):
    return await Hooks.of(plugins).intervene(moment, subject, None, **options)


async def test_without_interveners_the_subject_passes_as_it_is():
    subject = object()
    assert await pass_through([], subject=subject) == (subject, None)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("before_invocation", ["early", "late", "police"]),
        ("before_model_call", ["early", "late", "police"]),
        ("before_tool_call", ["early", "late", "police"]),
        ("after_model_call", ["police", "early", "late"]),
        ("after_tool_call", ["police", "early", "late"]),
    ],
)
async def test_policies_are_asked_last_before_and_first_after(moment, expected):
    log = []
    plugins = [noting("late", log, order=1), noting("police", log, tier="policy"), noting("early", log)]

    assert await pass_through(plugins, moment) == ("subject", None)
    assert names(log) == expected


async def test_a_last_look_asks_policies_only():
    log = []
    await pass_through([noting("one", log), noting("police", log, tier="policy")], policies_only=True)
    assert names(log) == ["police"]


async def test_the_first_refusal_ends_the_questions():
    log = []
    no = Refuse("no")
    plugins = [noting("one", log), noting("two", log, lambda _: no), noting("three", log)]

    assert await pass_through(plugins) == ("subject", no)
    assert names(log) == ["one", "two"]


async def test_the_next_is_shown_what_the_one_before_put_in():
    log = []
    plugins = [noting("one", log, lambda subject: Replace(subject + "!")), noting("police", log, tier="policy")]

    assert await pass_through(plugins) == ("subject!", None)
    assert log == [("one", "subject"), ("police", "subject!")]


@pytest.mark.parametrize("answer", [True, False, "no", 0, Refuse, Replace(3), Replace(None), [Refuse("no")]], ids=repr)
@pytest.mark.parametrize("tier", ["policy", "normal"])
async def test_an_answer_that_is_no_verdict_is_refused(answer, tier):
    message = "intervene of plugin 'one' answered .* at before_tool_call .*test_gates.py:.*Replace.another str"
    with pytest.raises(PluginError, match=message):
        await pass_through([noting("one", [], lambda _: answer, tier=tier)])


async def test_a_replacement_may_be_of_a_subclass():
    text = type("Text", (str,), {})("other")
    assert await pass_through([noting("one", [], lambda _: Replace(text))]) == (text, None)


@pytest.mark.parametrize("tier", ["policy", "normal"])
async def test_an_error_reaches_the_caller_with_a_note(tier):
    async def intervene(self):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await pass_through([intervener("one", intervene, tier=tier)])

    [note] = caught.value.__notes__
    assert note.startswith("in the hook intervene of the plugin one (")


async def test_a_policy_that_does_not_answer_in_time_is_an_error_and_is_cancelled():
    ended = asyncio.Event()

    async def intervene(self):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    message = "the policy 'slow' did not answer within 0.01 s at before_tool_call .*test_gates.py:.*: nothing passes"
    with pytest.raises(PluginError, match=message):
        await pass_through([intervener("slow", intervene, tier="policy", time_limit=0.01)])

    await asyncio.wait_for(ended.wait(), 5)


async def test_a_policy_that_swallows_its_cancellation_is_left_behind():
    let_go = asyncio.Event()

    async def intervene(self):
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(PluginError, match="did not answer"):
        await pass_through([intervener("slow", intervene, tier="policy", time_limit=0.01)])

    let_go.set()


async def test_a_normal_plugin_has_no_time_limit():
    async def intervene(self):
        await asyncio.sleep(0.02)

    plugin = intervener("slow", intervene, time_limit=0.001)
    assert await pass_through([plugin]) == ("subject", None)


async def test_cancelling_the_one_who_waits_cancels_the_policy():
    started, ended = asyncio.Event(), asyncio.Event()

    async def intervene(self):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(pass_through([intervener("slow", intervene, tier="policy")]))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.wait_for(ended.wait(), 5)


async def test_a_policy_sees_the_context_variables_of_the_run():
    from contextvars import ContextVar

    variable = ContextVar("variable", default="unset")
    seen = []

    async def intervene(self):
        seen.append(variable.get())

    variable.set("set")
    await pass_through([intervener("police", intervene, tier="policy")])

    assert seen == ["set"]


def test_an_observer_cannot_intervene():
    with pytest.raises(PluginError, match="an observer cannot implement intervene"):
        Hooks.of([noting("spy", [], tier="observer")])
