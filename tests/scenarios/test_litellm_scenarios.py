"""Faults met in the wild, through LiteLLM and an OpenAI-shaped server (scenarios A1 to A6, A13, A18, A22 and A24)."""

from __future__ import annotations

import copy
import json
import re
from contextlib import ExitStack
from itertools import pairwise

import pytest

from ropewalk import ModelRetryStrategy, tool
from ropewalk.errors import (
    ContextWindowOverflowException,
    IncompleteStreamError,
    MaxTokensReachedException,
    ModelError,
)
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk.kits.model_errors import ModelAuthError, ModelUnavailableError
from ropewalk_testing import assert_valid_history, text, turn, use
from ropewalk_testing.servers import DONE, OpenAIServer, http_fault, stream_fault

pytest.importorskip("ropewalk_litellm")

LEGAL_ID = LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def chunk(delta=None, finish=None):
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]}


def piece(index=..., use_id=..., name=..., arguments=...):
    """A chunk with one piece of a tool call; what is not given is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    head = {key: value for key, value in (("index", index), ("id", use_id)) if value is not ...}
    return chunk({"tool_calls": [{**head, "type": "function", "function": function}]})


def said(words):
    return chunk({"content": words})


END = [chunk({}, "tool_calls"), DONE]


class Waits(Seam):
    """Returns from every sleep at once, and remembers how long it would have been."""

    def __init__(self):
        self.seconds = []

    async def sleep(self, seconds):
        self.seconds.append(seconds)


@pytest.fixture
def waits():
    with use_seam(Waits()) as seam:
        yield seam.seconds


@pytest.fixture
def make_litellm(make_agent):
    """An agent that asks a scripted server: `make_litellm(turns, settings, **parameters)` gives agent and server."""
    from ropewalk_litellm import LiteLLMModel

    with ExitStack() as stack:

        def make(turns, settings=None, **parameters):
            server = stack.enter_context(OpenAIServer(turns))
            reach = {"api_base": server.api_base, "api_key": "k", "timeout": 10}
            model = LiteLLMModel("openai/scripted", **{"client_args": reach, **(settings or {})})
            agent, _ = make_agent(model, **parameters)
            return agent, server

        yield make


@pytest.fixture
def calls():
    """What the tools of `calculators` were called with."""
    return []


@pytest.fixture
def calculators(calls):
    """Two tools that note their calls."""

    @tool
    async def add(a: int, b: int) -> str:
        """Adds."""
        calls.append(("add", a, b))
        return str(a + b)

    @tool
    async def mul(a: int, b: int) -> str:
        """Multiplies."""
        calls.append(("mul", a, b))
        return str(a * b)

    return [add, mul]


def uses_of(message):
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]


def sent_calls(received, index=1):
    """(id, name, arguments) of each tool call in a message that was sent."""
    calls = received.body["messages"][index]["tool_calls"]
    return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


BOTH = [("A", "add", {"a": 1, "b": 2}), ("B", "mul", {"a": 3, "b": 4})]

# -- A1 ----------------------------------------------------------------------------------------------------------

INTERLEAVED = {
    "as reported": [
        piece(0, "A", "add", ""), piece(1, "B", "mul", ""),
        piece(0, arguments='{"a": 1,'), piece(1, arguments='{"a": 3,'),
        piece(0, arguments=' "b": 2}'), piece(1, arguments=' "b": 4}'), *END,
    ],
    "with text between": [
        piece(0, "A", "add", ""), piece(1, "B", "mul", ""), piece(0, arguments='{"a": 1,'), said("I "),
        piece(1, arguments='{"a": 3,'), piece(0, arguments=' "b": 2}'), said("calculate"),
        piece(1, arguments=' "b": 4}'), *END,
    ],
    "two in one piece": [
        chunk({"tool_calls": [
            {"index": 0, "id": "A", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}},
            {"index": 1, "id": "B", "type": "function", "function": {"name": "mul", "arguments": '{"a": 3, "b": 4}'}},
        ]}),
        *END,
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", INTERLEAVED.values(), ids=INTERLEAVED)
def test_interleaved_calls_stay_two(ask, make_litellm, calls, calculators, events):
    """Scenario A1."""
    agent, server = make_litellm([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert [(u["toolUseId"], u["name"], u["input"]) for u in uses_of(agent.messages[1])] == BOTH
    assert sent_calls(server.requests[1]) == BOTH
    texts = [block["text"] for block in agent.messages[1]["content"] if "text" in block]
    assert texts == (["I calculate"] if "calculate" in str(events) else [])


# -- A2 ----------------------------------------------------------------------------------------------------------

ADD, MUL, REST = '{"a":1,"b":2}', '{"a":3,', '"b":4}'
MISNUMBERED = {
    "a: a repeated index": [piece(0, "A", "add", ADD), piece(0, "B", "mul", MUL), piece(1, arguments=REST)],
    "b: heads without index": [piece(None, "A", "add", ADD), piece(None, "B", "mul", MUL), piece(1, arguments=REST)],
    "b: no index at all": [
        piece(use_id="A", name="add", arguments=ADD),
        piece(use_id="B", name="mul", arguments=MUL),
        piece(arguments=REST),
    ],
    "b: the index is forgotten": [piece(0, "A", "add", ADD), piece(1, "B", "mul", MUL), piece(None, arguments=REST)],
    "c: interleaved": [
        piece(0, "A", "add", '{"a":1'),
        piece(1, "B", "mul", MUL),
        piece(0, arguments=',"b":2}'),
        piece(1, arguments=REST),
    ],
    "a known id at another index": [piece(0, "A", "add", ADD), piece(1, "B", "mul", MUL), piece(0, "B", None, REST)],
    "id and name in every piece": [
        piece(0, "A", "add", '{"a":1'),
        piece(0, "A", "add", ',"b":2}'),
        piece(1, "B", "mul", MUL),
        piece(1, "B", "mul", REST),
    ],
}


@pytest.mark.parametrize("pieces", MISNUMBERED.values(), ids=MISNUMBERED)
def test_calls_do_not_merge_when_the_index_is_wrong(ask, make_litellm, calls, calculators, pieces):
    """Scenario A2."""
    agent, server = make_litellm([turn(raw=[*pieces, *END]), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert sent_calls(server.requests[1]) == BOTH
    assert_valid_history(agent.messages)


HEADS = {
    "d: id and arguments null": [piece(0, None, "add", None), piece(0, arguments=ADD)],
    "no id": [piece(0, name="add", arguments=""), piece(0, arguments=ADD)],
    "an empty id": [piece(0, "", "add", ""), piece(0, arguments=ADD)],
    "an illegal id": [piece(0, "call_1|fc_2", "add", ""), piece(0, arguments=ADD)],
    "a long id": [piece(0, "x" * 80, "add", ""), piece(0, "x" * 80, None, ADD)],
}


@pytest.mark.parametrize("pieces", HEADS.values(), ids=HEADS)
def test_a_missing_or_illegal_id_is_replaced_once(ask, make_litellm, calls, calculators, pieces):
    """Scenarios A2 and A10."""
    agent, server = make_litellm([turn(raw=[*pieces, *END]), "ok"], tools=calculators)

    ask(agent, "go")

    assert calls == [("add", 1, 2)]
    ((use_id, _, _),) = sent_calls(server.requests[1])
    assert LEGAL_ID.fullmatch(use_id)
    assert server.requests[1].body["messages"][2]["tool_call_id"] == use_id


def test_one_id_for_two_calls_is_two_calls(ask, make_litellm, calls, calculators):
    """Scenario A10."""
    raw = [piece(0, "A", "add", ADD), piece(1, "A", "mul", MUL + REST), *END]
    agent, server = make_litellm([turn(raw=raw), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert len({use_id for use_id, _, _ in sent_calls(server.requests[1])}) == 2
    assert_valid_history(agent.messages)


# -- A3 ----------------------------------------------------------------------------------------------------------


def test_a_tool_call_with_stop_is_run(ask, make_litellm, calls, calculators):
    """Scenario A3 a."""
    agent, _ = make_litellm([turn(use("add", {"a": 1, "b": 2}), stop="end_turn"), "3"], tools=calculators)

    assert str(ask(agent, "go")) == "3\n"
    assert calls == [("add", 1, 2)]


def test_tool_calls_without_a_call_are_a_plain_end(ask, make_litellm, calculators):
    """Scenario A3 b."""
    agent, server = make_litellm([turn("just words", stop="tool_use")], tools=calculators)

    result = ask(agent, "go")

    assert (result.stop_reason, str(result), server.calls) == ("end_turn", "just words\n", 1)


BROKEN_OFF = {
    "c: in a text": [said("half an "), said("answer")],
    "c: in a text, with an end": [said("half an answer"), DONE],
    "d: in a call": [piece(0, "T1", "add", '{"a": 1, "b": 2}')],
    "d: in a call, with an end": [piece(0, "T1", "add", '{"a": 1, "b": 2}'), DONE],
    "e: no event": [],
    "e: only the end": [DONE],
    "e: only the start": [chunk({"role": "assistant", "content": ""}), DONE],
}


@pytest.mark.parametrize("events", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_stream_that_just_ends_is_a_retryable_error_and_stores_nothing(ask, make_litellm, calls, calculators, events):
    """Scenario A3 c, d, e."""
    agent, _ = make_litellm(["fine", turn(raw=events), "back"], tools=calculators, retry_strategy=None)
    ask(agent, "one")
    before = list(agent.messages)

    with pytest.raises(IncompleteStreamError) as caught:
        ask(agent, "two")

    assert caught.value.retryable
    assert (calls, list(agent.messages)) == ([], before)
    assert str(ask(agent, "three")) == "back\n"


def test_a_call_cut_at_the_token_limit_is_not_run(ask, make_litellm, calls, calculators):
    """Scenario A3 f."""
    cut = turn(text("I will"), use("add", '{"a": 1, "b"', id="T1"), stop="max_tokens")
    agent, _ = make_litellm([cut, "back"], tools=calculators)

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "go")

    assert calls == []
    assert str(ask(agent, "go on")) == "back\n"
    assert_valid_history(agent.messages)


# -- A4 ----------------------------------------------------------------------------------------------------------


def thinking(**block):
    return chunk({"thinking_blocks": [{"type": "thinking", "thinking": "", **block}]})


def test_thinking_is_sent_back_with_each_blocks_own_signature(ask, make_litellm):
    """Scenario A4."""
    events = [
        thinking(thinking="a"), thinking(signature="S1"),
        thinking(thinking="b"), thinking(signature="S"), thinking(signature="2"),
        chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "AQ=="}]}),
        thinking(thinking="c"),
        said("so"),
        thinking(signature="S4"),
        chunk({}, "stop"), DONE,
    ]  # fmt: skip
    agent, server = make_litellm([turn(raw=events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    assert [block for block in agent.messages[1]["content"] if "reasoningContent" in block] == [
        {"reasoningContent": {"reasoningText": {"text": "a", "signature": "S1"}}},
        {"reasoningContent": {"reasoningText": {"text": "b", "signature": "S2"}}},
        {"reasoningContent": {"redactedContent": b"\x01"}},
        {"reasoningContent": {"reasoningText": {"text": "c"}}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "S4"}}},
    ]
    assert server.requests[1].body["messages"][1] == {
        "role": "assistant",
        "content": "so",
        "thinking_blocks": [
            {"type": "thinking", "thinking": "a", "signature": "S1"},
            {"type": "thinking", "thinking": "b", "signature": "S2"},
            {"type": "redacted_thinking", "data": "AQ=="},
            {"type": "thinking", "thinking": "", "signature": "S4"},
        ],
    }


# -- A5 ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def purged():
    return []


@pytest.fixture
def purge(purged):
    @tool
    def purge(prefix: str = "*") -> str:
        """Deletes everything that starts with the prefix."""
        purged.append(prefix)
        return "purged"

    return purge


@pytest.mark.parametrize("raw", ['{"prefix": "tmp/', '{}""', '"{\\"prefix\\": \\"x\\"}"', "null", "[]", '""'])
def test_arguments_that_are_no_object_do_not_run_the_tool(ask, make_litellm, purge, purged, raw):
    """Scenario A5."""
    agent, server = make_litellm([use("purge", raw, id="T1"), "ok"], tools=[purge])

    assert ask(agent, "go").stop_reason == "end_turn"

    assert purged == []
    assert sent_calls(server.requests[1]) == [("T1", "purge", {})]
    answered = server.requests[1].body["messages"][2]
    assert answered["tool_call_id"] == "T1"
    assert answered["content"].startswith("Error")
    assert "JSON" in answered["content"]


@pytest.mark.parametrize("raw", ["", "   "])
def test_blank_arguments_are_an_empty_object(ask, make_litellm, purge, purged, raw):
    """Scenario A5."""
    agent, _ = make_litellm([use("purge", raw), "ok"], tools=[purge])

    ask(agent, "go")

    assert purged == ["*"]


# -- A6 ----------------------------------------------------------------------------------------------------------

OVERFLOWS = [
    "prompt is too long: 203470 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 142422 + 64000 > 204658",
    "Input is too long for requested model",
    "This model's maximum context length is 131072 tokens",
    "The input (400013 tokens) is longer than the model's context length (262144 tokens).",
    "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
    "Input Tokens Exceeded: the number of input tokens is above the limit",
]
NO_OVERFLOWS = [
    http_fault(429, "rate_limit_exceeded", "Too many tokens per minute, please wait before trying again."),
    http_fault(400, "invalid_request_error", "messages.0.content is too long for this field"),
    http_fault(400, "invalid_request_error", "The maximum tokens you requested exceeds the model limit of 2048"),
]


@pytest.mark.parametrize("spelling", [str, str.upper, str.lower])
@pytest.mark.parametrize("words", OVERFLOWS)
def test_an_overflow_is_known_by_its_words(make_litellm, words, spelling):
    """Scenario A6."""
    agent, _ = make_litellm([http_fault(400, "invalid_request_error", spelling(words))])

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("go")

    assert spelling(words).rstrip(".") in str(caught.value)


def test_an_overflow_inside_the_stream_is_known_too(make_litellm):
    """The kind behind A6."""
    agent, _ = make_litellm([stream_fault("invalid_request_error", OVERFLOWS[0])])

    with pytest.raises(ContextWindowOverflowException):
        agent("go")


@pytest.mark.parametrize("fault", NO_OVERFLOWS, ids=lambda fault: fault.message)
def test_what_only_looks_like_an_overflow_is_none(make_litellm, fault):
    """Scenario A6."""
    agent, _ = make_litellm([fault], retry_strategy=None)

    with pytest.raises(ModelError) as caught:
        agent("go")

    assert not isinstance(caught.value, ContextWindowOverflowException)
    assert fault.message.rstrip(".") in str(caught.value)


# -- A13 ---------------------------------------------------------------------------------------------------------


def test_half_an_emoji_reaches_the_provider_as_legal_text(ask, make_litellm, waits):
    """Scenario A13."""

    @tool
    def broken() -> str:
        """Gives half an emoji."""
        return "bad \ud83d end"

    agent, server = make_litellm([use("broken", {}), "ok"], tools=[broken], system_prompt="s \ud83d")

    ask(agent, "p \ud83d")

    system, prompt, _, result = server.requests[1].body["messages"]
    assert (system["content"], prompt["content"], result["content"]) == ("s \ufffd", "p \ufffd", "bad \ufffd end")
    assert waits == []


# -- A18 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bad name!", "admin.tools.list", "名前", "", "x" * 65])
def test_a_name_that_the_model_invents_is_sent_back_legal(ask, make_litellm, calculators, name):
    """Scenario A18."""
    agent, server = make_litellm([use(name, {}, id="T1"), "ok"], tools=calculators)

    assert ask(agent, "go").stop_reason == "end_turn"

    ((use_id, sent, _),) = sent_calls(server.requests[1])
    assert use_id == "T1"
    assert LEGAL_NAME.fullmatch(sent)
    assert server.requests[1].body["messages"][2]["content"].startswith("Error")


# -- A22 ---------------------------------------------------------------------------------------------------------

TRANSIENT = {
    "throttling": 429, "serviceUnavailable": 503, "modelNotReady": 429,
    "internalServer": 500, "modelTimeout": 408, "modelStreamError": 424,
}  # fmt: skip
SPELLINGS = {
    spelling: status
    for code, status in TRANSIENT.items()
    for spelling in (f"{code}Exception", f"{code[0].upper()}{code[1:]}Exception")
}
BEFORE = {
    **{spelling: http_fault(status, spelling, "it failed") for spelling, status in SPELLINGS.items()},
    "rate_limit_exceeded": http_fault(429, "rate_limit_exceeded", "it failed"),
    "server_error": http_fault(500, "server_error", "it failed"),
    "a page": http_fault(502, body=b"<html><body>it failed</body></html>"),
    "silence": turn(stall=True),
}
IN_STREAM = {
    **{f"{spelling} in the stream": stream_fault(spelling, "it failed", after=["half"]) for spelling in SPELLINGS},
    "rate_limit_exceeded in the stream": stream_fault("rate_limit_exceeded", "it failed", after=["half"]),
    "server_error in the stream": stream_fault("server_error", "it failed", after=["half"]),
    "dropped connection": turn("half", cut=True),
    "read timeout": turn("half", stall=True),
}


@pytest.mark.parametrize("fault", [*BEFORE.values(), *IN_STREAM.values()], ids=[*BEFORE, *IN_STREAM])
def test_a_transient_error_is_repeated_and_consumers_are_told(make_litellm, events_of, shape, waits, fault):
    """Scenario A22."""
    agent, server = make_litellm([fault, "whole"], retry_strategy=ModelRetryStrategy(jitter=0))
    if getattr(fault, "stall", None):
        reach = {"api_base": server.api_base, "api_key": "k", "timeout": 1.0}
        agent.model.update_config(client_args=reach)

    events = events_of(agent, "go")

    result = events[-1]["result"]
    assert (server.calls, waits) == (2, [4])
    assert (result.metrics.model_calls, result.metrics.cycle_count, str(result)) == (2, 1, "whole\n")
    (told,) = [event for event in events if "attempt_discarded" in event]
    before = events[: events.index(told)]
    assert "".join(e["data"] for e in before if "data" in e) == ("half" if fault in IN_STREAM.values() else "")
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]


@pytest.mark.parametrize(
    "fault",
    [http_fault(403, "AccessDeniedException", "not yours"), http_fault(429, "insufficient_quota", "not yours")],
    ids=["denied", "used up"],
)
def test_a_refusal_is_not_repeated(ask, make_litellm, waits, fault):
    """Scenario A22."""
    agent, server = make_litellm([fault, "whole"])

    with pytest.raises(ModelAuthError, match="not yours"):
        ask(agent, "go")

    assert (server.calls, waits) == (1, [])
    assert str(ask(agent, "again")) == "whole\n"


def test_an_error_that_stays_is_raised_with_the_providers_words(make_litellm, waits):
    """The kind behind A22."""
    fault = http_fault(503, "overloaded_error", "come back later")
    agent, server = make_litellm([fault] * 3, retry_strategy=ModelRetryStrategy(max_attempts=3, jitter=0))

    with pytest.raises(ModelUnavailableError, match="come back later"):
        agent("go")

    assert (server.calls, waits) == (3, [4, 8])


# -- A24 ---------------------------------------------------------------------------------------------------------

POINT = {"cachePoint": {"type": "default"}}


def answers(count):
    events = [said("an answer"), thinking(thinking="hm"), thinking(signature="S"), chunk({}, "stop"), DONE]
    return [turn(raw=events) for _ in range(count)]


def marked(value):
    """Everything in a request that carries a mark."""
    if isinstance(value, list):
        return [found for each in value for found in marked(each)]

    if not isinstance(value, dict):
        return []

    return [value] * ("cache_control" in value) + [found for each in value.values() for found in marked(each)]


@pytest.mark.parametrize("auto", [{"strategy": "auto"}, None], ids=["auto", "manual"])
def test_cache_points_are_few_and_where_the_provider_takes_them(make_litellm, calculators, auto):
    """Scenario A24."""
    agent, server = make_litellm(answers(6), tools=calculators, system_prompt=[{"text": "sys"}, POINT])
    agent.model.update_config(cache_config=auto)
    prompts = [[{"text": f"long question {n}"}, POINT, {"text": f"it is {n} o'clock"}] for n in range(6)]
    given = copy.deepcopy(prompts)

    for prompt in prompts:
        agent(prompt)

    assert prompts == given
    assert all(POINT in message["content"] for message in agent.messages[::2])
    for received in server.requests:
        body = received.body
        found = marked(body)
        assert 2 <= len(found) <= 4
        assert {each["type"] for each in found} <= {"text", "function"}
        assert marked(body["messages"][0]), "the system prompt's point"
        assert [p.get("cache_control") for p in body["messages"][-1]["content"]] == [{"type": "ephemeral"}, None]
        assert "cachePoint" not in json.dumps(body)


def test_what_was_cached_is_the_beginning_of_the_next_request(make_litellm):
    """The kind behind A24: a point is worth something only if what stands before it stays as it is."""
    agent, server = make_litellm(answers(4))
    agent.model.update_config(cache_config={"strategy": "auto"})
    for number in range(4):
        agent(f"question {number}")

    def prefix(body):
        said = [
            (m["role"], m["content"] if isinstance(m["content"], str) else m["content"][0]["text"])
            for m in body["messages"]
        ]
        return said[: max(i for i, message in enumerate(body["messages"]) if marked(message)) + 1]

    cached = [prefix(received.body) for received in server.requests]
    for before, after in pairwise(cached):
        assert after[: len(before)] == before
        assert len(after) > len(before)


# -- with the plugins beside it ------------------------------------------------------------------------------------


def test_the_cost_is_limited_by_litellms_prices(ask, make_litellm, calculators, monkeypatch):
    from ropewalk_litellm import litellm_cost
    from ropewalk_litellm.library import litellm

    price = {"litellm_provider": "openai", "input_cost_per_token": 0.001, "output_cost_per_token": 0.01}
    monkeypatch.setattr(litellm(), "model_cost", {**litellm().model_cost, "scripted": price})
    asking = turn(use("add", {"a": 1, "b": 2}), usage=(10, 5))
    prices = [("limits", {"prices": litellm_cost})]
    agent, server = make_litellm([asking] * 3, tools=calculators, plugins=prices)

    result = ask(agent, "go", limits={"cost": 0.1})

    assert result.stop_reason == "limit_cost"
    assert server.calls == 2  # 0.06 each


def test_structured_output_is_held_to_its_schema(ask, make_litellm):
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    agent, server = make_litellm(["Ann is seven.", '{"name": "Ann", "age": 7}'])

    result = ask(agent, "Who?", structured_output_model=Person)

    assert result.structured_output == Person(name="Ann", age=7)
    assert server.requests[1].body["response_format"]["json_schema"]["schema"]["required"] == ["name", "age"]
