from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent, tool
from ropewalk.errors import IncompleteStreamError, MalformedStreamError, UnknownModelError
from ropewalk.kits.model_errors import ModelRequestError, ModelUnavailableError
from ropewalk_litellm import LiteLLMModel
from ropewalk_testing import assert_valid_history, turn, use
from ropewalk_testing.servers import CUT, DONE, pause, sse


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.fixture
def make_agent():
    """An agent that prints nothing."""

    def make(model, **parameters):
        return Agent(model=model, callback_handler=None, **parameters)

    return make


def text_of(events):
    return "".join(e["contentBlockDelta"]["delta"].get("text", "") for e in events if "contentBlockDelta" in e)


@pytest.mark.parametrize("stream", [True, False])
def test_an_agent_runs_a_tool(served, make_agent, stream):
    model, server = served([["I add.", use("add", {"a": 1, "b": 2}, id="T1")], "It is 3."], stream=stream)
    agent = make_agent(model, tools=[add], system_prompt="Be exact.")

    result = agent("What is 1 + 2?")

    assert str(result) == "It is 3.\n"
    assert [request.path for request in server.requests] == ["/v1/chat/completions"] * 2
    assert server.requests[0].headers["authorization"] == "Bearer sk-of-a-test"
    assert server.requests[1].body["messages"] == [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "content": "What is 1 + 2?"},
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [
                {"id": "T1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "T1", "content": "3"},
    ]
    assert [each["function"]["name"] for each in server.requests[0].body["tools"]] == ["add"]
    assert_valid_history(agent.messages)


def test_connections_are_reused_by_synchronous_calls(served, make_agent):
    model, server = served(lambda _: "yes")
    agent = make_agent(model)

    for _ in range(100):
        agent("again?")
        agent.messages.clear()

    assert (server.calls, server.connections) == (100, 1)


def test_agents_on_loops_in_a_row_share_the_connection(served, make_agent):
    model, server = served(["one", "two"])

    said = [str(asyncio.run(make_agent(model).invoke_async("go"))) for _ in range(2)]

    assert said == ["one\n", "two\n"]
    assert server.connections == 1


@pytest.mark.parametrize("silent", [turn(stall=True), turn("half", stall=True)], ids=["before", "in the middle"])
async def test_cancelling_the_agent_closes_the_stream(served, make_agent, silent):
    model, server = served([silent, "next"])
    agent = make_agent(model)
    call = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.to_thread(server.stalled.wait, 10)

    agent.cancel()
    result = await asyncio.wait_for(call, 10)

    assert result.stop_reason == "cancelled"
    await asyncio.to_thread(server.wait_streams_closed)
    assert server.aborted == 1
    assert str(await agent.invoke_async("go on")) == "next\n"


async def test_a_stream_that_falls_silent_times_out(served, ask, collect):
    model, server = served([turn("half", stall=True)], client_args={"timeout": 0.2})

    with pytest.raises(ModelUnavailableError, match=r"[Tt]ime"):
        await collect(model, ask())

    await asyncio.to_thread(server.wait_streams_closed)


async def test_a_stream_that_is_slow_is_none_that_is_silent(served, ask, collect, chunk):
    raw = [chunk({"content": "a"}), pause(0.05), chunk({"content": "b"}), pause(0.05), chunk({}, "stop"), DONE]
    model, _ = served([turn(raw=raw)], client_args={"timeout": 5})

    assert text_of(await collect(model, ask())) == "ab"


ENDINGS = {
    "cut": turn("half", cut=True),
    "the end of the file": turn(raw=[sse({"choices": [{"index": 0, "delta": {"content": "half"}}]})]),
    "no reason": turn(raw=[sse({"choices": [{"index": 0, "delta": {"content": "half"}}]}), DONE]),
    "nothing but the end": turn(raw=[DONE]),
    "nothing": turn(raw=[]),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
async def test_a_stream_without_its_end_is_incomplete(served, ask, collect, ending):
    model, _ = served([ending])

    with pytest.raises(IncompleteStreamError) as caught:
        await collect(model, ask())

    assert caught.value.retryable
    assert (caught.value.provider, caught.value.failure) == ("litellm", "transient")


MALFORMED = {
    "no UTF-8": b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"}}]}\n\n',
    "no JSON": b'data: {"choices":\n\n',
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_text_or_no_json_is_malformed(served, ask, collect, raw):
    model, _ = served([turn(raw=[raw, DONE])])

    with pytest.raises(MalformedStreamError):
        await collect(model, ask())


async def test_nulls_and_unknown_fields_are_passed_over(served, ask, collect, chunk):
    raw = [
        {"choices": None}, {"choices": []}, {"choices": [{"index": 0, "delta": None}]}, b": a comment\n\n",
        chunk({"content": None, "tool_calls": None, "mood": "good"}), chunk({"content": "x"}), chunk({}, "stop"), DONE,
    ]  # fmt: skip
    model, _ = served([turn(raw=raw)])

    assert text_of(await collect(model, ask())) == "x"


async def test_what_follows_the_reason_to_stop_still_counts(served, ask, collect, chunk):
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    raw = [chunk({"content": "x"}, "stop"), chunk({"content": "y"}), chunk({}, "stop"), chunk(usage=usage), DONE]
    model, _ = served([turn(raw=raw)])

    events = await collect(model, ask())

    assert text_of(events) == "xy"
    assert sum("messageStop" in event for event in events) == 1
    assert events[-1]["metadata"]["usage"] == {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8}


AFTER_THE_REASON = {
    "a cut": [CUT],
    "half a chunk": [b'data: {"choi', CUT],
    "no JSON": [b'data: {"choices":\n\n'],
    "an error": [{"error": {"message": "tripped at the door", "code": "server_error"}}],
}


@pytest.mark.parametrize("after", AFTER_THE_REASON.values(), ids=AFTER_THE_REASON)
async def test_an_answer_that_is_complete_is_not_paid_for_again_when_only_its_end_is_lost(
    served, ask, collect, chunk, call, after
):
    raw = [chunk({"content": "whole"}), chunk(call(0, "T1", "add", '{"a": 1}')), chunk({}, "tool_calls"), *after]
    model, server = served([turn(raw=raw), "next"])

    events = await collect(model, ask())

    assert text_of(events) == "whole"
    assert [event["messageStop"] for event in events if "messageStop" in event] == [{"stopReason": "tool_use"}]
    assert text_of(await collect(model, ask())) == "next"
    assert server.calls == 2


async def test_an_answer_may_repeat_itself(served, ask, collect, chunk):
    model, _ = served([turn(raw=[*[chunk({"content": "----"})] * 300, chunk({}, "stop"), DONE])])

    assert text_of(await collect(model, ask())) == "----" * 300


async def test_cached_tokens_are_told(served, ask, collect, chunk):
    usage = {
        "prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103,
        "prompt_tokens_details": {"cached_tokens": 80},
    }  # fmt: skip
    model, _ = served([turn(raw=[chunk({"content": "x"}), chunk({}, "stop"), chunk(usage=usage), DONE])])

    assert (await collect(model, ask()))[-1]["metadata"]["usage"] == {
        "inputTokens": 20, "outputTokens": 3, "totalTokens": 103, "cacheReadInputTokens": 80,
    }  # fmt: skip


@pytest.mark.parametrize("finish", ["pause_for_reflection", "content_filter", "length"])
async def test_reasons_to_stop_survive_litellm(served, ask, collect, chunk, finish):
    model, _ = served([turn(raw=[chunk({"content": "x"}), chunk({}, finish), DONE])])

    (stop,) = [e["messageStop"]["stopReason"] for e in await collect(model, ask()) if "messageStop" in e]
    assert stop == {"content_filter": "content_filtered", "length": "max_tokens"}.get(finish, finish)


async def test_a_giant_delta_passes(served, ask, collect, chunk):
    giant = "ä" * 2_000_000
    model, _ = served([turn(raw=[chunk({"content": giant}), chunk({}, "stop"), DONE])])

    assert text_of(await collect(model, ask())) == giant


def uses_of(events):
    starts = [e["contentBlockStart"] for e in events if "contentBlockStart" in e]
    pieces = [e["contentBlockDelta"] for e in events if "contentBlockDelta" in e]
    return [
        (
            start["start"]["toolUse"]["toolUseId"],
            start["start"]["toolUse"]["name"],
            "".join(
                p["delta"]["toolUse"]["input"] for p in pieces if p["contentBlockIndex"] == start["contentBlockIndex"]
            ),
        )
        for start in starts
    ]


async def test_a_missing_index_is_not_taken_for_the_first(served, ask, collect, chunk, call):
    """LiteLLM reads a missing index as 0."""
    raw = [
        chunk(call(0, "c1", "f", '{"a":1}')), chunk(call(1, "c2", "g", '{"b":')), chunk(call(None, None, None, "2}")),
        chunk({}, "tool_calls"), DONE,
    ]  # fmt: skip
    model, _ = served([turn(raw=raw)])

    assert uses_of(await collect(model, ask())) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


async def test_a_call_without_a_function_is_not_lost(served, ask, collect, chunk, call):
    """LiteLLM drops such a delta."""
    head = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": None}]}
    raw = [chunk(head), chunk(call(0, None, "f", "{}")), chunk({}, "tool_calls"), DONE]
    model, _ = served([turn(raw=raw)])

    assert uses_of(await collect(model, ask())) == [("c1", "f", "{}")]


async def test_only_the_first_of_several_answers_is_taken(served, ask, collect, chunk):
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]}
    model, _ = served([turn(raw=[chunk({"content": "first"}), other, chunk({}, "stop"), DONE])])

    assert text_of(await collect(model, ask())) == "first"


async def test_headers_and_parameters_reach_the_server(served, ask, collect):
    model, server = served(
        ["hi"], client_args={"extra_headers": {"x-tenant": "acme"}}, params={"temperature": 0.5, "seed": 3}
    )

    await collect(model, ask(output_schema={"type": "object"}))

    (request,) = server.requests
    assert request.headers["x-tenant"] == "acme"
    assert (request.body["temperature"], request.body["seed"]) == (0.5, 3)
    assert request.body["response_format"]["type"] == "json_schema"


async def test_a_parameter_that_the_provider_does_not_have_is_named(served, ask, collect):
    model, server = served(["never"], model_id="openai/gpt-4o", params={"thinking": {"type": "enabled"}})

    with pytest.raises(ModelRequestError, match="thinking"):
        await collect(model, ask())

    assert server.calls == 0


async def test_a_proxy_of_the_environment_is_used(served, ask, collect, monkeypatch):
    model, server = served([], client_args={"api_base": "http://models.invalid/v1"})
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)

    monkeypatch.setenv("HTTP_PROXY", server.url)

    with pytest.raises(UnknownModelError):  # the server knows its own addresses only
        await collect(model, ask())

    assert server.requests[0].path == "http://models.invalid/v1/chat/completions"


async def test_settings_can_be_changed(served, ask, collect):
    model, server = served(["one", "two"], params={"temperature": 0.1})
    model.update_config(params={"temperature": 0.9}, context_window_limit=50)

    await collect(model, ask())

    assert server.requests[0].body["temperature"] == 0.9
    assert model.context_window == 50
    assert model.get_config()["model_id"] == "openai/scripted"
    with pytest.raises(ValueError, match="temprature"):
        model.update_config(temprature=0.5)


@pytest.mark.parametrize("settings", [{"model_id": ""}, {"model_id": "m", "context_window_limit": 0}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=r"model_id|context_window_limit"):
        LiteLLMModel(**settings)
