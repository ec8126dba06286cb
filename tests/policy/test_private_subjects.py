"""What a policy has seen is what runs and what is stored: nobody else holds it, and it can do nothing of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ropewalk import ModelOutcome, ModelRequest, hookimpl
from ropewalk.kits.calls.invocation import CallOptions, Invocation
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk.kits.hooks.private import private
from ropewalk_testing import use

SECRET = "the secret"
TASKS = []


def shown(subject):
    """What a policy reads of a subject, once."""
    for name in ("messages", "message"):
        if hasattr(subject, name):
            value = getattr(subject, name)
            return str(list(value) if name == "messages" else value) + str(getattr(subject, "system", ""))

    return str(subject) if isinstance(subject, dict) else subject.tool.tool_name + str(subject.tool_use)


def slowly(moment):
    """A rule that has read its subject some time before it answers."""

    async def rule(now, subject, agent):
        if now != moment:
            return None

        text = shown(subject)
        for _ in range(5):
            await asyncio.sleep(0)

        return Refuse("hidden") if "secret" in text or "danger" in text else None

    return rule


def soon(write):
    """Writes while the policy thinks."""

    async def act():
        await asyncio.sleep(0)
        write()

    TASKS.append(asyncio.ensure_future(act()))


def message(text="fine"):
    return {"role": "user", "content": [{"text": text}]}


def put(message):
    message["content"][0]["text"] = SECRET


async def run(agent):
    result = await agent.invoke_async("Go.")
    return f"{list(agent.messages)} {agent.model.requests} {result}"


# -- what hooks hold ---------------------------------------------------------------------------------------------------


async def test_a_result_that_a_hook_writes_to_while_the_policy_thinks(govern, make_agent, plugin):
    async def around_tool_call(self, call, call_next):
        result = {**await call_next(call), "content": [{"text": "another"}]}
        soon(lambda: put(result))
        return result

    govern(slowly("after_tool_call"))
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[plugin("late", around_tool_call=around_tool_call)])

    assert "secret" not in await run(agent)


async def test_a_result_that_its_tool_writes_to_while_the_policy_thinks(govern, make_agent, tools):
    async def invoke(call):
        result = {"toolUseId": "T1", "status": "success", "content": [{"text": "fine"}]}
        soon(lambda: put(result))
        return result

    tools.safe.invoke = invoke
    govern(slowly("after_tool_call"))

    assert "secret" not in await run(make_agent(use("safe", {}, id="T1"), "done"))


async def test_an_answer_that_a_hook_writes_to_while_the_policy_thinks(govern, make_agent, plugin):
    async def around_model_call(self, request, call_next):
        await call_next(request)
        outcome = ModelOutcome.saying("fine")
        soon(lambda: put(outcome.message))
        return outcome

    govern(slowly("after_model_call"))

    assert "secret" not in await run(make_agent("hi", plugins=[plugin("late", around_model_call=around_model_call)]))


async def test_an_input_that_a_hook_writes_to_while_the_policy_thinks(govern, make_agent, plugin):
    async def around_invocation(self, invocation, call_next):
        mine = message()
        soon(lambda: put(mine))
        return await call_next(invocation.with_messages([mine]))

    govern(slowly("before_invocation"))

    assert "secret" not in await run(make_agent("hi", plugins=[plugin("late", around_invocation=around_invocation)]))


async def test_an_input_that_a_hook_writes_to_afterwards(govern, make_agent, plugin):
    mine = message()

    async def around_invocation(self, invocation, call_next):
        return await call_next(invocation.with_messages([mine]))

    async def around_model_call(self, request, call_next):
        put(mine)
        return await call_next(request)

    govern(slowly("before_invocation"))
    late = plugin("late", around_invocation=around_invocation, around_model_call=around_model_call)

    assert "secret" not in await run(make_agent("hi", plugins=[late]))


@pytest.mark.parametrize("part", ["messages", "system"])
async def test_a_request_that_a_hook_writes_to_while_the_policy_thinks(govern, make_agent, plugin, part):
    async def around_model_call(self, request, call_next):
        mine = [message()] if part == "messages" else ({"text": "fine"},)
        soon(lambda: put(mine[0]) if part == "messages" else mine[0].update(text=SECRET))
        return await call_next(replace(request, **{part: mine}))

    govern(slowly("before_model_call"))

    assert "secret" not in await run(make_agent("hi", plugins=[plugin("late", around_model_call=around_model_call)]))


class Tricky(dict):
    """Arguments that remain the same object when they are copied."""

    def __deepcopy__(self, memo):
        return self


async def test_arguments_that_cannot_be_copied_away(govern, make_agent, tools, plugin):
    async def around_tool_call(self, call, call_next):
        mine = Tricky(x="fine")
        soon(lambda: mine.update(x=SECRET))
        return await call_next(call.with_input(mine))

    govern(slowly("before_tool_call"))
    await run(make_agent(use("safe", {}, id="T1"), "hi", plugins=[plugin("late", around_tool_call=around_tool_call)]))

    assert tools.safe.ran == [{"x": "fine"}]
    assert type(tools.safe.ran[0]) is dict


# -- what others are shown who intervene -------------------------------------------------------------------------------


@pytest.fixture(params=["normal", "policy"])
def other(request):
    """Somebody else who intervenes, or who says of itself that it is a policy: `other(function(moment, subject))`."""

    def make(function):
        class Other:
            name = "other"
            tier = request.param
            order = -1

            @hookimpl(tryfirst=True)
            async def intervene(self, moment, subject):
                return function(moment, subject)

        return Other()

    return make


@pytest.mark.parametrize("what", ["input", "tool"])
async def test_a_call_that_another_writes_to_while_the_policy_thinks(govern, make_agent, tools, other, what):
    def keep(moment, subject):
        if moment == "before_tool_call":
            change = {"input": lambda: subject.tool_use["input"].update(x=SECRET), "tool": lambda: swap(subject)}
            soon(change[what])

    def swap(subject):
        subject.tool = tools.danger

    govern(slowly("before_tool_call"))
    await run(make_agent(use("safe", {}, id="T1"), "hi", plugins=[other(keep)]))

    assert tools.danger.ran == []
    assert "secret" not in str(tools.safe.ran)


@pytest.mark.parametrize("how", ["piece", "whole"])
async def test_an_answer_that_another_writes_to_after_the_policy(govern, make_agent, other, how):
    def write(moment, subject):
        if moment == "after_model_call" and how == "piece":
            put(subject.message)
        elif moment == "after_model_call":
            subject.message = {"role": "assistant", "content": [{"text": SECRET}]}

    govern(slowly("after_model_call"))

    assert "secret" not in await run(make_agent("hi", plugins=[other(write)]))


async def test_a_result_that_another_writes_to_after_the_policy(govern, make_agent, other):
    def write(moment, subject):
        if moment == "after_tool_call":
            put(subject)

    govern(slowly("after_tool_call"))

    assert "secret" not in await run(make_agent(use("safe", {}, id="T1"), "hi", plugins=[other(write)]))


@pytest.mark.parametrize("moment", ["after_model_call", "after_tool_call"])
async def test_what_another_puts_in_after_the_policy_is_looked_at(govern, make_agent, other, moment):
    def swap(now, subject):
        if now != moment:
            return None

        changed = {**subject, "content": [{"text": SECRET}]} if isinstance(subject, dict) else None
        return Replace(changed or ModelOutcome.saying(SECRET))

    govern(slowly(moment))

    assert "secret" not in await run(make_agent(use("safe", {}, id="T1"), "hi", plugins=[other(swap)]))


async def test_what_another_puts_in_is_not_looked_at_without_end(govern, make_agent, other):
    asked = []

    async def rule(moment, subject, agent):
        if moment == "after_model_call":
            asked.append(subject.message["content"][0]["text"])

    govern(rule)
    swap = other(lambda moment, _: Replace(ModelOutcome.saying("mine")) if moment == "after_model_call" else None)

    assert "mine" in await run(make_agent("hi", plugins=[swap]))
    assert asked == ["hi", "mine"]


async def test_a_policy_in_force_may_replace_what_nobody_looks_at_again(govern, make_agent, other):
    async def rule(moment, subject, agent):
        return Replace(ModelOutcome.saying("masked")) if moment == "after_model_call" else None

    govern(rule)
    seen = []
    watch = other(lambda moment, subject: seen.append(subject.message) if moment == "after_model_call" else None)

    assert "masked" in await run(make_agent("hi", plugins=[watch]))
    assert str(seen[0]).count("masked") == 1


# -- the copies --------------------------------------------------------------------------------------------------------


def test_the_history_itself_is_not_copied(make_agent):
    agent = make_agent("hi", messages=[message("first")])
    view = ModelRequest(agent.history.view(), tool_specs=agent.tool_registry.specs)
    listed = ModelRequest([*agent.history.view(), added := message("second")])

    assert private(view, agent).messages is view.messages
    assert private(view, agent).tool_specs is agent.tool_registry.specs
    assert private(listed, agent).messages[0] is agent.messages[0]
    assert private(listed, agent).messages[1] == added
    assert private(listed, agent).messages[1] is not added


def test_a_copy_has_all_that_its_original_has():
    given = Invocation((message(),), CallOptions("Go.", {"a": 1}), resumed=True)
    outcome = ModelOutcome(message(), "tool_use", {"inputTokens": 3}, 7, {"T1": "odd"}, "redacted")

    assert private(given, None) == given
    assert private(given, None).options is given.options
    assert private(outcome, None).to_dict() == outcome.to_dict()


def test_without_a_policy_nothing_is_copied(make_agent, plugin):
    seen = []

    async def intervene(self, moment, subject):
        seen.append((moment, subject))

    async def around_model_call(self, request, call_next):
        seen.append(("sent", request))
        return await call_next(request)

    watch = plugin("watch", intervene=intervene, around_model_call=around_model_call)
    agent = make_agent("hi", plugins=[watch])
    agent("Go.")
    subjects = dict(seen)

    assert subjects["before_model_call"] is subjects["sent"]


def test_a_copy_of_a_derived_outcome_is_a_plain_one():
    class Derived(ModelOutcome):
        __slots__ = ("more",)

    copied = private(Derived(message(), "end_turn", latency_ms=3), None)

    assert type(copied) is ModelOutcome
    assert (copied.message, copied.stop_reason, copied.latency_ms) == (message(), "end_turn", 3)
