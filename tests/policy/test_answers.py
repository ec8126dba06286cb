"""What goes to a model and what comes from it passes the policies, and nothing of a refused answer is seen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ropewalk import ModelOutcome, ToolsOutcome, current_run
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk.kits.events import MessageAdded, TextDelta
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

DENIED = "DENIED: a secret"


def at(moment):
    """A rule: refuses at one moment what holds the word secret."""

    async def rule(now, subject, agent):
        shown = getattr(subject, "messages", None) or getattr(subject, "message", None)
        return Refuse("a secret") if now == moment and "secret" in str([*shown]) + str(shown) else None

    return rule


def texts(agent):
    return [block.get("text") for message in agent.messages for block in message["content"]]


# -- input -------------------------------------------------------------------------------------------------------


async def test_a_denied_invocation_stores_nothing_and_says_so(govern, make_agent):
    govern(at("before_invocation"))
    agent = make_agent("hello")

    result = await agent.invoke_async("the secret")

    assert (result.stop_reason, str(result)) == ("end_turn", f"{DENIED}\n")
    assert (list(agent.messages), agent.model.calls) == ([], 0)
    assert str(await agent.invoke_async("something else")) == "hello\n"


async def test_an_invocation_that_a_hook_changes_is_denied(govern, make_agent, plugin):
    async def around_invocation(self, invocation, call_next):
        return await call_next(invocation.with_messages([{"role": "user", "content": [{"text": "the secret"}]}]))

    govern(at("before_invocation"))
    agent = make_agent("hello", plugins=[plugin("swap", order=-9, around_invocation=around_invocation)])

    assert str(await agent.invoke_async("harmless")) == f"{DENIED}\n"
    assert list(agent.messages) == []


async def test_a_denied_request_is_not_sent(govern, make_agent):
    govern(at("before_model_call"))
    agent = make_agent("hello")

    result = await agent.invoke_async("the secret")

    assert (result.stop_reason, str(result), agent.model.calls) == ("end_turn", f"{DENIED}\n", 0)
    assert texts(agent) == ["the secret", DENIED]
    assert_valid_history(agent.messages)


async def test_a_request_that_a_hook_changes_is_not_sent(govern, make_agent, plugin):
    async def around_model_call(self, request, call_next):
        secret = ({"role": "user", "content": [{"text": "the secret"}]},)
        return await call_next(replace(request, messages=secret))

    govern(at("before_model_call"))
    agent = make_agent("hello", plugins=[plugin("swap", around_model_call=around_model_call)])

    assert str(await agent.invoke_async("harmless")) == f"{DENIED}\n"
    assert agent.model.calls == 0


# -- answers -----------------------------------------------------------------------------------------------------


async def test_a_refused_answer_is_replaced_everywhere(govern, make_agent):
    govern(at("after_model_call"))
    agent = make_agent("the secret", "fine")

    result = await agent.invoke_async("Go.")

    assert (result.stop_reason, str(result)) == ("end_turn", f"{DENIED}\n")
    assert texts(agent) == ["Go.", DENIED]
    assert str(await agent.invoke_async("And?")) == "fine\n"
    assert "secret" not in str(agent.model.last_request.messages).replace(DENIED, "")


async def test_tools_that_a_refused_answer_asks_for_do_not_run(govern, make_agent, tools):
    govern(at("after_model_call"))
    agent = make_agent(["the secret", use("safe", {}, id="T1")])

    assert str(await agent.invoke_async("Go.")) == f"{DENIED}\n"
    assert tools.safe.ran == []


def answer(text):
    return ModelOutcome({"role": "assistant", "content": [{"text": text}]}, "end_turn")


async def changes_the_answer(self, request, call_next):
    await call_next(request)
    return answer("the secret")


async def writes_to_the_answer(self, request, call_next):
    outcome = await call_next(request)
    outcome.message["content"][0]["text"] = "the secret"
    return outcome


async def answers_in_its_place(self, request, call_next):
    return answer("the secret")


@pytest.mark.parametrize("hook", [changes_the_answer, writes_to_the_answer, answers_in_its_place])
async def test_an_answer_that_a_hook_changes_after_the_gate_is_looked_at_again(govern, make_agent, plugin, hook):
    govern(at("after_model_call"))
    agent = make_agent("harmless", plugins=[plugin("hook", order=-9, around_model_call=hook)])

    assert str(await agent.invoke_async("Go.")) == f"{DENIED}\n"
    assert texts(agent) == ["Go.", DENIED]


async def test_an_answer_that_a_hook_gives_after_the_tools_is_looked_at(govern, make_agent, plugin):
    async def around_tools(self, batch, call_next):
        return ToolsOutcome((await call_next(batch)).results, "the secret")

    govern(at("after_model_call"))
    agent = make_agent(use("safe", {}, id="T1"), plugins=[plugin("hook", around_tools=around_tools)])

    assert str(await agent.invoke_async("Go.")) == f"{DENIED}\n"
    assert "the secret" not in str(agent.messages)
    assert_valid_history(agent.messages)


async def test_an_unchanged_answer_is_looked_at_once(govern, make_agent):
    seen = []

    async def count(moment, subject, agent):
        seen.append(moment)

    govern(count)
    await make_agent("hello").invoke_async("Go.")

    assert seen == ["before_invocation", "before_model_call", "after_model_call"]


async def test_a_policy_may_replace_an_answer(govern, make_agent):
    async def mask(moment, subject, agent):
        if moment == "after_model_call" and "secret" in str(subject.message):
            return Replace(answer("the ***"))

        return None

    govern(mask)
    agent = make_agent("the secret")

    assert str(await agent.invoke_async("Go.")) == "the ***\n"
    assert texts(agent) == ["Go.", "the ***"]


# -- held back ---------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(make_agent, plugin):
    """An agent with what its followers see: `watched(*turns)` gives (agent, seen by hook, by callback)."""

    def make(*turns):
        by_hook, by_callback = [], []

        def on_delta(self, event):
            by_hook.append(event)

        async def on_event(self, event):
            if isinstance(event, MessageAdded):
                by_hook.append(event)

        observer = plugin("spy", on_delta=on_delta, on_event=on_event)
        agent = make_agent(*turns, plugins=[observer], callback_handler=lambda **event: by_callback.append(event))
        return agent, by_hook, by_callback

    return make


async def streamed(agent, prompt="Go."):
    return [event async for event in agent.stream_async(prompt)]


def shown_text(events):
    return "".join(event["data"] for event in events if "data" in event)


async def test_nothing_of_a_refused_answer_is_seen(govern, watched):
    govern(at("after_model_call"), holds_output=True)
    agent, by_hook, by_callback = watched(turn("the secret", deltas=4))

    events = await streamed(agent)

    assert shown_text(events) == shown_text(by_callback) == DENIED
    assert [event.text for event in by_hook if isinstance(event, TextDelta)] == [DENIED]
    everything = str(events) + str(by_callback) + str([getattr(event, "raw", None) for event in by_hook])
    assert "the s" not in everything
    assert texts(agent) == ["Go.", DENIED]


async def test_all_of_an_accepted_answer_is_seen_in_its_pieces(govern, watched):
    govern(at("after_model_call"), holds_output=True)
    agent, by_hook, by_callback = watched(turn("quite harmless", deltas=4))

    events = await streamed(agent)

    pieces = [event["data"] for event in events if "data" in event and "complete" not in event]
    assert (len(pieces), "".join(pieces)) == (4, "quite harmless")
    assert [event["data"] for event in by_callback if "data" in event and "complete" not in event] == pieces
    assert [event.text for event in by_hook if isinstance(event, TextDelta)] == pieces


async def test_held_or_not_an_accepted_answer_shows_the_same_events(govern, watched):
    async def shape(holds):
        govern(at("after_model_call"), name="holder" if holds else "watcher", holds_output=holds)
        agent, _, _ = watched(["think", use("safe", {"a": 1}, id="T1")], turn("done", deltas=2))
        return [str(event) for event in await streamed(agent) if "result" not in event and "run_id" not in str(event)]

    assert await shape(True) == await shape(False)


async def test_an_answer_that_passes_after_a_pause_is_seen_then(govern, make_agent):
    async def rule(moment, subject, agent):
        if moment == "after_model_call":
            current_run().interrupt("is it fit to be read?")

    govern(rule, holds_output=True)
    agent = make_agent("quite harmless")
    before = await streamed(agent)
    (question,) = before[-1]["result"].interrupts
    after = await streamed(agent, [{"interruptResponse": {"interruptId": question.id, "response": True}}])

    assert (shown_text(before), shown_text(after)) == ("", "quite harmless")
    assert agent.model.calls == 1


async def test_a_policy_may_ask_about_what_a_hook_says_in_the_end(govern, make_agent, plugin):
    async def rule(moment, subject, agent):
        if moment == "after_model_call" and "instead" in str(subject.message):
            return Refuse("a secret") if current_run().interrupt("is it fit to be read?") == "no" else None

        return None

    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        if result.stop_reason != "interrupt":
            result.message = {"role": "assistant", "content": [{"text": "said instead"}]}

        return result

    govern(rule)
    agent = make_agent("quite harmless", plugins=[plugin("says", around_invocation=around_invocation)])
    for answer, said in (("no", DENIED), ("yes", "said instead")):
        agent.model = ScriptedModel(["quite harmless"])
        (question,) = (await agent.invoke_async("Go.")).interrupts
        answers = [{"interruptResponse": {"interruptId": question.id, "response": answer}}]
        assert str(await agent.invoke_async(answers)) == f"{said}\n"
        assert agent.model.calls == 1


async def test_a_policy_may_ask_about_what_ends_the_turn_after_the_tools(govern, make_agent, plugin, tools):
    async def rule(moment, subject, agent):
        if moment == "after_model_call" and "enough" in str(subject.message):
            current_run().interrupt("is it fit to be read?")

    async def around_tools(self, batch, call_next):
        return ToolsOutcome((await call_next(batch)).results, "enough")

    govern(rule)
    agent = make_agent(use("safe", {}, id="T1"), "never", plugins=[plugin("ends", around_tools=around_tools)])
    (question,) = (await agent.invoke_async("Go.")).interrupts
    result = await agent.invoke_async([{"interruptResponse": {"interruptId": question.id, "response": True}}])

    assert (str(result), agent.model.calls, len(tools.safe.ran)) == ("enough\n", 1, 1)
    assert_valid_history(agent.messages)


async def test_of_an_attempt_that_failed_nothing_is_seen(govern, make_agent, plugin):
    async def decide_retry(self, failure):
        return 0.0 if failure.attempt == 1 else None

    govern(at("after_model_call"), holds_output=True)
    failing = turn("half an ans", error=ConnectionError("gone"))
    agent = make_agent(failing, "whole answer", plugins=[plugin("again", decide_retry=decide_retry)])

    assert shown_text(await streamed(agent)) == "whole answer"


async def test_a_cancelled_answer_passes_the_gate_too(govern, make_agent):
    govern(at("after_model_call"), holds_output=True)
    agent = make_agent(turn("the secret", stall=True))
    task = asyncio.ensure_future(streamed(agent))
    await agent.model.wait_stalled()
    agent.cancel()

    seen = await task

    assert "the s" not in str(seen) + str(agent.messages)
    assert seen[-1]["result"].stop_reason == "cancelled"


async def test_what_a_tool_streams_waits_for_its_result_to_pass(govern, make_agent, tools):
    async def rule(moment, subject, agent):
        secret = moment == "after_tool_call" and "secret" in str(subject)
        return Refuse("a secret") if secret else None

    class Streaming(type(tools.safe)):
        async def invoke(self, call):
            call.emit(f"soon: {self.answer}")
            return await super().invoke(call)

    govern(rule, holds_output=True)
    good, bad = Streaming("good", "fine"), Streaming("bad", "the secret")
    agent = make_agent([use("good", {}, id="T1"), use("bad", {}, id="T2")], "done", tools=[good, bad])

    events = await streamed(agent)

    assert [event["tool_stream_event"]["data"] for event in events if "tool_stream_event" in event] == ["soon: fine"]
