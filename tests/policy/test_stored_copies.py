"""What a policy has passed is what is stored, not an object that a hook still holds."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace

import pytest

from ropewalk import Denied, ModelOutcome, ToolContext, tool
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk.kits.suspension import Suspension
from ropewalk_testing import assert_valid_history, turn, use

SECRET = "the secret"


async def rule(moment, subject, agent):
    """Refuses every answer and result that holds the word secret."""
    shown = getattr(subject, "message", subject)
    return Refuse("hidden") if moment.startswith("after") and "secret" in str(shown) else None


class Agreeable(dict):
    """Says of itself that it equals anything."""

    __hash__ = None

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


def secret_result(call):
    return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": SECRET}]}


def secret_message():
    return Agreeable(role="assistant", content=[{"text": SECRET}])


async def run(agent):
    result = await agent.invoke_async("Go.")
    return f"{list(agent.messages)} {agent.model.requests} {result}"


async def test_a_result_that_a_hook_writes_to_later(govern, make_agent, plugin):
    held = []

    async def around_tool_call(self, call, call_next):
        held.append(await call_next(call))
        return held[-1]

    async def around_model_call(self, request, call_next):
        for result in held:
            result["content"][0]["text"] = SECRET

        return await call_next(request)

    govern(rule)
    late = plugin("late", around_tool_call=around_tool_call, around_model_call=around_model_call)

    assert "secret" not in await run(make_agent(use("safe", {}, id="T1"), "done", plugins=[late]))


async def test_a_result_that_says_it_is_the_one_that_passed(govern, make_agent, plugin):
    async def around_tool_call(self, call, call_next):
        await call_next(call)
        return Agreeable(secret_result(call))

    govern(rule)
    liar = plugin("liar", around_tool_call=around_tool_call)

    assert "secret" not in await run(make_agent(use("safe", {}, id="T1"), "done", plugins=[liar]))


async def test_a_result_that_a_hook_changes_before_another_one_raises(govern, make_agent, plugin):
    async def around_tool_call(self, call, call_next):
        await call_next(call)
        return secret_result(call)

    async def around_tools(self, batch, call_next):
        await call_next(batch)
        raise LookupError("tripped")

    govern(rule)
    trips = plugin("trips", around_tool_call=around_tool_call, around_tools=around_tools)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[trips])
    with pytest.raises(LookupError):
        await agent.invoke_async("Go.")

    assert "secret" not in str(agent.messages)
    assert "ran" in str(agent.messages)
    assert_valid_history(agent.messages)


async def test_an_answer_that_says_it_is_the_one_that_passed(govern, make_agent, plugin):
    async def around_model_call(self, request, call_next):
        await call_next(request)
        return ModelOutcome(secret_message(), "end_turn")

    govern(rule)

    assert "secret" not in await run(make_agent("hi", plugins=[plugin("liar", around_model_call=around_model_call)]))


async def test_a_final_answer_that_says_it_is_the_one_that_passed(govern, make_agent, plugin):
    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        result.message = secret_message()
        return result

    govern(rule)

    assert "secret" not in await run(make_agent("hi", plugins=[plugin("liar", around_invocation=around_invocation)]))


async def test_an_answer_that_a_hook_writes_to_later(govern, make_agent, plugin):
    held = []

    async def around_model_call(self, request, call_next):
        held.append(await call_next(request))
        return held[-1]

    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        held[0].message["content"][0]["text"] = SECRET
        return result

    govern(rule)
    late = plugin("late", around_model_call=around_model_call, around_invocation=around_invocation)

    assert "secret" not in await run(make_agent("hi", plugins=[late]))


async def test_what_a_guardrail_takes_back_is_not_shown_when_output_is_held(govern, make_agent):
    raw = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": SECRET}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"redactContent": {"redactAssistantContentMessage": "[gone]"}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    govern(rule, holds_output=True)
    events = [event async for event in make_agent(turn(raw=raw)).stream_async("Go.")]

    assert "secret" not in str(events)
    assert "".join(event["data"] for event in events if "data" in event) == "[gone]"


async def test_what_a_tool_has_streamed_is_not_shown_when_a_policy_replaces_its_result(govern, make_agent, tools):
    async def mask(moment, subject, agent):
        masked = moment == "after_tool_call" and "secret" in str(subject)
        return Replace({**subject, "content": [{"text": "***"}]}) if masked else None

    class Streaming(type(tools.safe)):
        async def invoke(self, call):
            call.emit(f"soon: {self.answer}")
            return await super().invoke(call)

    govern(mask, holds_output=True)
    agent = make_agent(use("bad", {}, id="T1"), "done", tools=[Streaming("bad", SECRET)])

    assert "secret" not in str([event async for event in agent.stream_async("Go.")])


async def test_a_finished_result_in_a_snapshot_from_elsewhere_is_looked_at(govern, make_agent, tools):
    @tool(context=True)
    def ask(tool_context: ToolContext) -> str:
        """Asks."""
        return tool_context.interrupt("sure?")

    govern(rule)
    uses = [use("safe", {}, id="T1"), use("ask", {}, id="T2")]
    paused = make_agent(uses, tools=[tools.safe, ask])
    result = await paused.invoke_async("Go.")
    snapshot = paused.take_snapshot(preset="session")
    finished = {"T1": {"toolUseId": "T1", "status": "success", "content": [{"text": SECRET}]}}
    tampered = replace(paused.suspension, finished=finished).to_dict()

    agent = make_agent("done", tools=[tools.safe, ask])
    agent.load_snapshot(snapshot)
    agent.suspension = Suspension.from_dict(json.loads(json.dumps(tampered)))
    await agent.invoke_async([{"interruptResponse": {"interruptId": result.interrupts[0].id, "response": "y"}}])

    assert "secret" not in str(agent.messages) + str(agent.model.requests)
    assert_valid_history(agent.messages)


async def test_a_direct_call_takes_what_cannot_be_copied(govern, make_agent, tools):
    govern(rule)
    lock, agent = threading.Lock(), make_agent()

    result = await asyncio.to_thread(lambda: agent.tool.safe(lock=lock))

    assert result["status"] == "success"
    assert tools.safe.ran == [{"lock": lock}]


async def test_a_tool_may_answer_with_one_dict_again_and_again(make_agent):
    class Reuses:
        tool_name = "reuses"
        tool_spec = {"name": "reuses", "description": "R", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012
        result = {"status": "success", "content": [{"text": ""}]}  # noqa: RUF012
        count = 0

        async def invoke(self, call):
            self.count += 1
            self.result["toolUseId"] = call.tool_use["toolUseId"]
            self.result["content"][0]["text"] = f"answer {self.count}"
            return self.result

    agent = make_agent(use("reuses", {}, id="T1"), use("reuses", {}, id="T2"), "done", tools=[Reuses()])
    await agent.invoke_async("Go.")

    assert_valid_history(agent.messages)
    assert [f"answer {n}" in str(agent.messages[2 * n]) for n in (1, 2)] == [True, True]


@pytest.mark.parametrize("ending", [asyncio.CancelledError, SystemExit, KeyboardInterrupt])
async def test_a_result_that_a_policy_did_not_judge_to_its_end_is_withheld(govern, make_agent, tools, ending):
    async def breaks(moment, subject, agent):
        if moment == "after_tool_call":
            raise ending

    tools.safe.answer = SECRET
    govern(breaks)
    agent = make_agent(use("safe", {}, id="T1"), "done")
    with pytest.raises(ending):
        await agent.invoke_async("Go.")

    assert "secret" not in str(agent.messages)
    assert_valid_history(agent.messages)


async def test_a_result_is_withheld_when_the_caller_goes_away_before_it_was_judged(govern, make_agent, tools):
    thinking = asyncio.Event()

    async def slow(moment, subject, agent):
        if moment == "after_tool_call":
            thinking.set()
            await asyncio.Event().wait()

    tools.safe.answer = SECRET
    govern(slow)
    agent = make_agent(use("safe", {}, id="T1"), "done")
    task = asyncio.ensure_future(agent.invoke_async("Go."))
    await thinking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert "secret" not in str(agent.messages)
    assert_valid_history(agent.messages)


async def test_a_refused_answer_cannot_say_by_itself_what_takes_its_place(govern, make_agent, plugin):
    class Stubborn(ModelOutcome):
        __slots__ = ()

        def withheld(self, text):
            return ModelOutcome.saying(SECRET)

    async def around_model_call(self, request, call_next):
        await call_next(request)
        return Stubborn({"role": "assistant", "content": [{"text": SECRET}]}, "end_turn")

    govern(rule)
    stubborn = plugin("stubborn", around_model_call=around_model_call)

    assert "secret" not in await run(make_agent("hi", plugins=[stubborn]))


async def test_the_words_of_a_hook_that_denies_a_call_are_looked_at(govern, make_agent, plugin):
    async def around_invocation(self, invocation, call_next):
        return Denied(SECRET)

    govern(rule)

    assert "secret" not in await run(make_agent("hi", plugins=[plugin("denies", around_invocation=around_invocation)]))


async def test_the_words_of_a_policy_that_denies_a_call_are_not(govern, make_agent):
    asked = []

    async def refuses(moment, subject, agent):
        asked.append(moment)
        return Refuse("no")

    govern(refuses)

    assert str(await make_agent("hi").invoke_async("Go.")) == "DENIED: no\n"
    assert asked == ["before_invocation"]
