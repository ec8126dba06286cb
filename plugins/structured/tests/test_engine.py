from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from pydantic import BaseModel, field_validator

from ropewalk import (
    Agent,
    ModelOutcome,
    ModelRequest,
    Refuse,
    Retry,
    Stop,
    StructuredOutputException,
    current_run,
    hookimpl,
    tool,
)
from ropewalk_testing import ScriptedModel, turn, use
from ropewalk_testing.history import assert_valid_history

GOOD = {"n": 1, "s": "x"}
BAD = {"s": "x"}


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Never(BaseModel):
    n: int

    def __bool__(self):
        return False


def names(request):
    return [spec["name"] for spec in request.tool_specs]


def results(agent):
    return [b["toolResult"] for m in agent.messages for b in m["content"] if "toolResult" in b]


# -- the tool ------------------------------------------------------------------------------------------------------


async def test_the_output_model_is_a_tool_of_the_requests_only(make_agent, pair):
    agent, model = make_agent([use("add", {"a": 1, "b": 2}), use("P", GOOD)], tools=[add], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert [names(request) for request in model.requests] == [["add", "P"]] * 2
    assert [request.tool_choice for request in model.requests] == [None, None]
    assert agent.tool_names == ["add"]
    assert result.structured_output == pair(n=1, s="x")
    assert result.stop_reason == "tool_use"
    assert agent.messages[-1]["content"][0]["toolResult"]["status"] == "success"


async def test_the_other_tools_of_the_message_have_run(make_agent, pair):
    asked = [use("P", GOOD, id="p"), use("add", {"a": 1, "b": 2}, id="a")]
    agent, _ = make_agent([asked], tools=[add], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert [(each["toolUseId"], each["status"]) for each in results(agent)] == [("p", "success"), ("a", "success")]
    assert results(agent)[1]["content"] == [{"text": "3"}]


async def test_the_first_valid_call_in_the_order_of_the_message_wins(make_agent, pair):
    class Slow:
        name = "slow"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            for _ in range(5 if call.tool_use["toolUseId"] == "b" else 0):
                await asyncio.sleep(0)

            return await call_next(call)

    asked = [use("P", BAD, id="a"), use("P", {"n": 2, "s": "b"}, id="b"), use("P", {"n": 3, "s": "c"}, id="c")]
    agent, model = make_agent([asked], structured_output_model=pair, plugins=[Slow()])
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=2, s="b")
    assert model.calls == 1


async def test_a_falsy_output_is_an_output(make_agent):
    agent, model = make_agent([use("Never", {"n": 0})], structured_output_model=Never)
    result = await agent.invoke_async("go")

    assert result.structured_output is not None
    assert result.structured_output.n == 0
    assert model.calls == 1


async def test_a_union_with_none_may_be_filled_with_none(make_agent, pair):
    agent, model = make_agent([use("P_or_None", {"value": None})])
    result = await agent.invoke_async("go", structured_output_model=pair | None)

    assert result.structured_output is None
    assert result.stop_reason == "tool_use"
    assert model.calls == 1


async def test_arguments_that_are_no_object_are_one_attempt(make_agent, pair):
    agent, _ = make_agent([use("P", "[1, 2]"), use("P", GOOD)], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert results(agent)[0]["status"] == "error"


async def test_the_next_call_goes_on_from_a_valid_history(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD), "well"], structured_output_model=pair)
    await agent.invoke_async("go")

    again, model = make_agent(["well"], messages=agent.messages)
    assert str(await again.invoke_async("and now?")) == "well\n"
    assert_valid_history(again.messages)
    assert names(model.requests[0]) == []


# -- corrections ---------------------------------------------------------------------------------------------------


async def test_three_wrong_answers_end_in_an_error_with_the_last_problem(make_agent, pair):
    agent, model = make_agent(lambda _: use("P", BAD), structured_output_model=pair)
    with pytest.raises(StructuredOutputException, match="did not fill P after 3 attempts") as caught:
        await agent.invoke_async("go")

    assert model.calls == 3
    assert caught.value.attempts == 3
    assert caught.value.output_model == "P"
    assert "Field 'n': Field required" in caught.value.problem
    assert_valid_history(agent.messages)
    assert len(results(agent)) == 3


async def test_two_wrong_calls_of_one_message_are_one_attempt(make_agent, pair):
    agent, _ = make_agent([[use("P", BAD), use("P", BAD)]] * 2 + [use("P", GOOD)], structured_output_model=pair)
    assert (await agent.invoke_async("go")).structured_output == pair(n=1, s="x")


async def test_the_number_of_attempts_is_an_option(make_agent, pair):
    options = ("structured", {"max_attempts": 1})
    agent, model = make_agent(lambda _: use("P", BAD), structured_output_model=pair, plugins=[options])
    with pytest.raises(StructuredOutputException):
        await agent.invoke_async("go")

    assert model.calls == 1


async def test_the_agent_works_after_an_error(make_agent, pair):
    agent, _ = make_agent([use("P", BAD)] * 3 + [use("P", GOOD)], structured_output_model=pair)
    with pytest.raises(StructuredOutputException):
        await agent.invoke_async("go")

    assert (await agent.invoke_async("again")).structured_output == pair(n=1, s="x")


async def test_a_validator_that_raises_anything_is_one_attempt(make_agent):
    class Odd(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value):
            return 1 // value

    agent, _ = make_agent([use("Odd", {"n": 0}), use("Odd", {"n": 1})], structured_output_model=Odd)
    assert (await agent.invoke_async("go")).structured_output == Odd(n=1)
    assert "ZeroDivisionError" in results(agent)[0]["content"][0]["text"]


# -- forced turns --------------------------------------------------------------------------------------------------


async def test_text_is_followed_by_a_turn_in_which_only_the_output_may_come(make_agent, pair):
    agent, model = make_agent(["It is one.", use("P", GOOD)], tools=[add], structured_output_model=pair)
    result = await agent.invoke_async("go")

    forced = model.requests[1]
    assert names(forced) == ["P"]
    assert forced.tool_choice == {"tool": {"name": "P"}}
    assert forced.messages[-1]["content"] == [{"text": "You must format the previous response as structured output."}]
    assert result.structured_output == pair(n=1, s="x")


async def test_json_in_the_text_of_a_forced_turn_is_taken(make_agent, pair):
    agent, _ = make_agent(["It is one.", 'Here: ```{"n": 1, "s": "x"}```'], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert result.stop_reason == "end_turn"
    assert agent.messages[-1]["role"] == "assistant"


async def test_json_in_the_first_answer_is_not_taken(make_agent, pair):
    agent, model = make_agent(['{"n": 1, "s": "first"}', use("P", GOOD)], structured_output_model=pair)
    assert (await agent.invoke_async("go")).structured_output.s == "x"
    assert model.calls == 2


async def test_text_without_json_in_a_forced_turn_is_an_error(make_agent, pair):
    agent, model = make_agent(["It is one.", "As I said, one."], structured_output_model=pair)
    with pytest.raises(StructuredOutputException, match=r"it answered 'As I said, one.' in place of structured output"):
        await agent.invoke_async("go")

    assert model.calls == 2
    assert_valid_history(agent.messages)


async def test_wrong_json_in_a_forced_turn_is_corrected(make_agent, pair):
    agent, model = make_agent(["one", '{"s": "x"}', '{"n": 1, "s": "x"}'], structured_output_model=pair)
    assert (await agent.invoke_async("go")).structured_output == pair(n=1, s="x")
    assert "Field 'n': Field required" in model.requests[2].messages[-1]["content"][0]["text"]


async def test_wrong_json_for_ever_is_an_error(make_agent, pair):
    agent, model = make_agent(lambda _: '{"s": "x"}', structured_output_model=pair)
    with pytest.raises(StructuredOutputException, match="after 3 attempts"):
        await agent.invoke_async("go")

    assert model.calls == 4


async def test_a_wrong_call_in_a_forced_turn_is_followed_by_another_forced_turn(make_agent, pair):
    agent, model = make_agent(["one", use("P", BAD), use("P", GOOD)], tools=[add], structured_output_model=pair)
    await agent.invoke_async("go")

    assert [names(request) for request in model.requests] == [["add", "P"], ["P"], ["P"]]


async def test_other_tools_in_forced_turns_end_in_an_error(make_agent, pair):
    def answer(request):
        return "one" if len(request.messages) == 1 else use("add", {"a": 1, "b": 1})

    agent, model = make_agent(answer, tools=[add], structured_output_model=pair)
    with pytest.raises(StructuredOutputException, match=r"it asked for other tools \(add\)"):
        await agent.invoke_async("go")

    assert model.calls == 4


async def test_a_model_that_takes_a_schema_is_held_to_it_in_a_forced_turn(make_agent, pair):
    agent, model = make_agent(["one", '{"n": 1, "s": "x"}'], native=True, tools=[add], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert model.requests[0].output_schema is None
    assert model.requests[1].output_schema["required"] == ["n", "s"]
    assert names(model.requests[1]) == []
    assert model.requests[1].tool_choice is None
    assert result.structured_output == pair(n=1, s="x")


@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened"])
async def test_what_a_guardrail_has_stopped_is_not_asked_for_again(make_agent, pair, reason):
    agent, model = make_agent([turn("I cannot.", stop=reason)], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert (result.stop_reason, result.structured_output, model.calls) == (reason, None, 1)


# -- together with other plugins -------------------------------------------------------------------------------------


class TurnLimit:
    """Stops at the top of the second cycle, before others are asked."""

    name = "turn-limit"
    order = -1

    @hookimpl
    async def decide_stop(self, cycle):
        return Stop("limit_turns") if cycle.index >= 1 else None


async def test_a_limit_before_the_forced_turn_is_the_result(make_agent, pair):
    agent, model = make_agent(["It is one."], structured_output_model=pair, plugins=[TurnLimit()])
    result = await agent.invoke_async("go")

    assert (result.stop_reason, result.structured_output, model.calls) == ("limit_turns", None, 1)
    assert str(result) == "It is one.\n"


async def test_a_run_that_is_done_has_not_run_into_a_limit(make_agent, pair):
    agent, _ = make_agent([use("P", GOOD)], structured_output_model=pair, plugins=[TurnLimit()])
    result = await agent.invoke_async("go")

    assert (result.stop_reason, result.structured_output) == ("tool_use", pair(n=1, s="x"))


async def test_a_run_that_a_hook_repeats_is_filled_anew(make_agent, pair):
    class Twice:
        name = "twice"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            self.first = await call_next(invocation)
            return await call_next(invocation.with_messages([{"role": "user", "content": [{"text": "again"}]}]))

    twice = Twice()
    agent, model = make_agent(
        [use("P", GOOD), use("P", {"n": 2, "s": "y"})], structured_output_model=pair, plugins=[twice]
    )
    result = await agent.invoke_async("go")

    assert twice.first.structured_output.n == 1
    assert result.structured_output.n == 2
    assert model.calls == 2


async def test_a_repeated_attempt_offers_the_output_model_once(make_agent, pair):
    class Again:
        name = "again"
        order = 10

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            return Retry("once more", request) if "no" in str(outcome.message) else outcome

    agent, model = make_agent(["no", use("P", GOOD)], structured_output_model=pair, plugins=[Again()])
    await agent.invoke_async("go")

    assert [names(request) for request in model.requests] == [["P"], ["P"]]


async def test_a_gate_that_refuses_the_call_keeps_the_output_from_being_taken(make_agent, pair):
    class Gate:
        name = "gate"

        @hookimpl
        async def intervene(self, moment, subject):
            if moment == "before_tool_call" and subject.tool_use["name"] == "P":
                return Refuse("not that")

            return None

    agent, model = make_agent(lambda _: use("P", GOOD), structured_output_model=pair, plugins=[Gate()])
    with pytest.raises(StructuredOutputException, match="DENIED: not that"):
        await agent.invoke_async("go")

    assert model.calls == 3


async def test_a_gate_that_withholds_the_result_keeps_the_output_from_being_taken(make_agent, pair):
    class Gate:
        name = "gate"
        seen = 0

        @hookimpl
        async def intervene(self, moment, subject):
            if moment != "after_tool_call":
                return None

            Gate.seen += 1
            return Refuse("secret") if Gate.seen == 1 else None

    agent, _ = make_agent([use("P", BAD | {"n": 9}), use("P", GOOD)], structured_output_model=pair, plugins=[Gate()])
    assert (await agent.invoke_async("go")).structured_output == pair(n=1, s="x")


async def test_results_that_a_hook_has_emptied_count_as_attempts(make_agent, pair):
    class Empty:
        name = "empty"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return {**await call_next(call), "status": "error", "content": []}

    agent, model = make_agent(lambda _: use("P", GOOD), structured_output_model=pair, plugins=[Empty()])
    with pytest.raises(StructuredOutputException, match="answered with an error"):
        await agent.invoke_async("go")

    assert model.calls == 3


async def test_hooks_around_tools_see_the_tool_and_the_log_has_it(make_agent, pair):
    seen, records = [], []

    class Look:
        name = "look"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            seen.append((call.tool.tool_name, call.tool.tool_spec["name"]))
            return await call_next(call)

        @hookimpl
        async def write_records(self, records):
            kept.extend(record.kind for record in records)

    kept = records
    agent, _ = make_agent([use("P", BAD), use("P", GOOD)], structured_output_model=pair, plugins=[Look()])
    result = await agent.invoke_async("go")

    assert seen == [("P", "P")] * 2
    assert records.count("tool_started") == records.count("tool_ended") == 2
    assert result.structured_output == pair(n=1, s="x")


async def test_a_call_that_a_hook_renames_to_the_output_model_fills_it(make_agent, pair):
    class Rename:
        name = "rename"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            renamed = call.private()
            renamed.tool_use["name"] = "P"
            return await call_next(renamed)

    agent, model = make_agent([use("p", GOOD)], structured_output_model=pair, plugins=[Rename()])
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert model.calls == 1


async def test_a_sub_agent_is_not_asked_for_its_parent_s_output(make_agent, pair):
    child, below = make_agent(["the child says one"])

    @tool
    async def ask() -> str:
        """Asks."""
        return str(await child.invoke_async("?"))

    agent, _ = make_agent([use("ask"), use("P", GOOD)], tools=[ask], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert names(below.requests[0]) == []


async def test_a_sub_agent_with_the_engine_answers_for_itself(make_agent, pair):
    child, below = make_agent([use("P", {"n": 5, "s": "c"}), "plain"])
    await child.invoke_async("?", structured_output_model=pair)

    @tool
    async def ask() -> str:
        """Asks."""
        return str(await child.invoke_async("?"))

    agent, _ = make_agent([use("ask"), use("P", GOOD)], tools=[ask], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert names(below.requests[1]) == []
    assert results(agent)[0]["content"] == [{"text": "plain\n"}]


async def test_agents_that_share_the_plugin_do_not_mix(make_agent, pair):
    one, first = make_agent([use("P", GOOD)])
    two, second = make_agent(["plain"])
    agents = await asyncio.gather(one.invoke_async("a", structured_output_model=pair), two.invoke_async("b"))

    assert [each.structured_output for each in agents] == [pair(n=1, s="x"), None]
    assert (names(first.requests[0]), names(second.requests[0])) == (["P"], [])


async def test_an_answer_in_the_model_s_place_is_an_answer(make_agent, pair):
    class Instead:
        name = "instead"
        order = 10

        @hookimpl
        async def around_model_call(self, request, call_next):
            return ModelOutcome.saying('{"n": 1, "s": "x"}')

    agent, model = make_agent([], structured_output_model=pair, plugins=[Instead()])
    result = await agent.invoke_async("go")

    assert result.structured_output == pair(n=1, s="x")
    assert model.calls == 0


async def test_a_cancelled_run_has_no_output(make_agent, pair):
    agent, _ = make_agent([turn("so", stall=True)], structured_output_model=pair)
    async for event in agent.stream_async("go"):
        if "data" in event:
            agent.cancel()

    assert (event["result"].stop_reason, event["result"].structured_output) == ("cancelled", None)


async def test_an_agent_is_freed_without_the_collector(pair):
    gc.collect()
    gc.disable()
    try:
        agent = Agent(ScriptedModel(["one", use("P", GOOD)]), callback_handler=None)
        await agent.invoke_async("go", structured_output_model=pair)
        gone = weakref.ref(agent)
        del agent
        await asyncio.sleep(0)

        assert gone() is None
    finally:
        gc.enable()


async def test_the_stream_ends_with_the_output(make_agent, pair):
    agent, _ = make_agent([use("P", BAD), use("P", GOOD)], structured_output_model=pair)
    events = [event async for event in agent.stream_async("go")]

    assert events[-1]["result"].structured_output == pair(n=1, s="x")
    assert {event["current_tool_use"]["name"] for event in events if "current_tool_use" in event} == {"P"}


# -- calls beside the conversation ---------------------------------------------------------------------------------


class SumsUp:
    """Asks the model for a summary before each of its turns."""

    name = "sums-up"

    @hookimpl
    async def manage_context(self, reason):
        if reason == "before_model":
            asked = ModelRequest([{"role": "user", "content": [{"text": "sum up"}]}])
            await current_run().ask_model(asked, "summarize")


async def test_a_call_beside_the_conversation_is_not_held_to_the_output_model(make_agent, pair):
    turns = ["a summary", "an answer", "a summary", use("P", GOOD)]
    agent, model = make_agent(turns, plugins=[SumsUp()], structured_output_model=pair)
    result = await agent.invoke_async("go")

    assert [(each.purpose, names(each)) for each in model.requests] == [
        ("summarize", []),
        ("turn", ["P"]),
        ("summarize", []),  # the output is demanded by now
        ("turn", ["P"]),
    ]
    assert [each.tool_choice is None for each in model.requests] == [True, True, True, False]
    assert result.structured_output == pair(n=1, s="x")
