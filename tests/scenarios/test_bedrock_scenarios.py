"""Faults met in the wild, through a Bedrock agent and the real boto3 (scenarios A1 to A6, A13, A18, A22 and A24)."""

from __future__ import annotations

import copy
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
from ropewalk_testing.servers import BedrockServer, http_fault, stream_fault

pytest.importorskip("ropewalk_bedrock")

LEGAL_ID = LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BEGIN = ("messageStart", {"role": "assistant"})


def head(index, tool_use_id, name):
    start = {"toolUse": {"toolUseId": tool_use_id, "name": name}}
    return ("contentBlockStart", {"contentBlockIndex": index, "start": start})


def args(index, piece):
    return ("contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}})


def said(index, piece):
    return ("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})


def thought(index, **piece):
    return ("contentBlockDelta", {"contentBlockIndex": index, "delta": {"reasoningContent": piece}})


def end(index):
    return ("contentBlockStop", {"contentBlockIndex": index})


def stop(reason="tool_use"):
    return ("messageStop", {"stopReason": reason})


def unindexed(event):
    """The same event without its block index."""
    name, body = event
    return (name, {key: value for key, value in body.items() if key != "contentBlockIndex"})


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


@pytest.fixture(scope="module")
def session():
    """One session for all clients, because each session reads boto3's description of the service anew."""
    import boto3

    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
            patch.delenv(name, raising=False)

        patch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
        yield boto3.Session(aws_access_key_id="k", aws_secret_access_key="s", region_name="us-west-2")


@pytest.fixture
def make_bedrock(make_agent, session):
    """An agent that asks a scripted Bedrock: `make_bedrock(turns, settings, **parameters)` gives agent and server."""
    from ropewalk_bedrock import BedrockModel

    with ExitStack() as stack:

        def make(turns, settings=None, **parameters):
            server = stack.enter_context(BedrockServer(turns))
            model = BedrockModel(endpoint_url=server.url, boto_session=session, **(settings or {}))
            stack.callback(model.close)
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


# -- A1 ----------------------------------------------------------------------------------------------------------

INTERLEAVED = {
    "as reported": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"),
        args(0, '{"a": 1,'), args(1, '{"a": 3,'), args(0, ' "b": 2}'), args(1, ' "b": 4}'), end(0), end(1), stop(),
    ],
    "with text between": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"), args(0, '{"a": 1,'), said(2, "I "), args(1, '{"a": 3,'),
        args(0, ' "b": 2}'), said(2, "calculate"), args(1, ' "b": 4}'), end(2), end(0), end(1), stop(),
    ],
    "stops the other way round": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"),
        args(0, '{"a": 1,'), args(1, '{"a": 3,'), args(0, ' "b": 2}'), args(1, ' "b": 4}'), end(1), end(0), stop(),
    ],
    "heads the other way round": [
        BEGIN, head(1, "B", "mul"), head(0, "A", "add"),
        args(1, '{"a": 3, "b": 4}'), args(0, '{"a": 1, "b": 2}'), end(1), end(0), stop(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", INTERLEAVED.values(), ids=INTERLEAVED)
def test_interleaved_tool_blocks_stay_two_calls(ask, make_bedrock, calls, calculators, events):
    """Scenario A1."""
    agent, server = make_bedrock([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    uses = [
        {"toolUseId": "A", "name": "add", "input": {"a": 1, "b": 2}},
        {"toolUseId": "B", "name": "mul", "input": {"a": 3, "b": 4}},
    ]
    assert uses_of(agent.messages[1]) == uses
    assert uses_of(server.requests[1].body["messages"][1]) == uses
    texts = [block["text"] for block in agent.messages[1]["content"] if "text" in block]
    assert texts == (["I calculate"] if "text" in str(events) else [])


# -- A2 ----------------------------------------------------------------------------------------------------------

MISNUMBERED = {
    "a repeated index": [
        BEGIN, head(0, "c1", "add"), args(0, '{"a":1,"b":2}'), head(0, "c2", "mul"), args(0, '{"a":3,"b":'),
        args(1, "4}"), stop(),
    ],
    "no index": [
        BEGIN, *map(unindexed, (head(0, "c1", "add"), args(0, '{"a":1,'), args(0, '"b":2}'))),
        *map(unindexed, (head(1, "c2", "mul"), args(1, '{"a":3,'), args(1, '"b":4}'))), stop(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", MISNUMBERED.values(), ids=MISNUMBERED)
def test_calls_do_not_merge_when_the_index_is_wrong(ask, make_bedrock, calls, calculators, events):
    """Scenario A2."""
    agent, _ = make_bedrock([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert [(u["toolUseId"], u["name"]) for u in uses_of(agent.messages[1])] == [("c1", "add"), ("c2", "mul")]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("use_id", [None, "", "call_1|fc_2", "x" * 80])
def test_a_missing_or_illegal_id_is_replaced_once(ask, make_bedrock, calls, calculators, use_id):
    """Scenarios A2 and A10."""
    events = [BEGIN, head(0, use_id, "add"), args(0, ""), args(0, '{"a":1,"b":2}'), end(0), stop()]
    agent, server = make_bedrock([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert calls == [("add", 1, 2)]
    asked, answered = server.requests[1].body["messages"][1:]
    ((sent,),) = ([u["toolUseId"] for u in uses_of(asked)],)
    assert LEGAL_ID.fullmatch(sent)
    assert answered["content"][0]["toolResult"]["toolUseId"] == sent


# -- A3 ----------------------------------------------------------------------------------------------------------


def test_a_tool_block_with_end_turn_is_run(ask, make_bedrock, calls, calculators):
    """Scenario A3 a."""
    agent, _ = make_bedrock([turn(use("add", {"a": 1, "b": 2}), stop="end_turn"), "3"], tools=calculators)

    assert str(ask(agent, "go")) == "3\n"
    assert calls == [("add", 1, 2)]


def test_tool_use_without_a_tool_block_is_a_plain_end(ask, make_bedrock, calculators):
    """Scenario A3 b."""
    agent, server = make_bedrock([turn("just words", stop="tool_use")], tools=calculators)

    result = ask(agent, "go")

    assert (result.stop_reason, str(result), server.calls) == ("end_turn", "just words\n", 1)


BROKEN_OFF = {
    "c: in a text": [BEGIN, said(0, "half an "), said(0, "answer")],
    "c: after a text": [BEGIN, said(0, "an answer"), end(0)],
    "d: in a tool block": [BEGIN, head(0, "T1", "add"), args(0, '{"a": 1, "b": 2}')],
    "d: after a tool block": [BEGIN, head(0, "T1", "add"), args(0, '{"a": 1, "b": 2}'), end(0)],
    "e: no event": [],
    "e: only the start": [BEGIN],
}


@pytest.mark.parametrize("events", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_stream_that_just_ends_is_a_retryable_error_and_stores_nothing(ask, make_bedrock, calls, calculators, events):
    """Scenario A3 c, d, e."""
    agent, _ = make_bedrock(["fine", turn(raw=events), "back"], tools=calculators, retry_strategy=None)
    ask(agent, "one")
    before = list(agent.messages)

    with pytest.raises(IncompleteStreamError) as caught:
        ask(agent, "two")

    assert caught.value.retryable
    assert (calls, list(agent.messages)) == ([], before)
    assert str(ask(agent, "three")) == "back\n"


def test_a_call_cut_at_the_token_limit_is_not_run(ask, make_bedrock, calls, calculators):
    """Scenario A3 f."""
    cut = turn(text("I will"), use("add", '{"a": 1, "b"', id="T1"), stop="max_tokens")
    agent, _ = make_bedrock([cut, "back"], tools=calculators)

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "go")

    assert calls == []
    assert str(ask(agent, "go on")) == "back\n"
    assert_valid_history(agent.messages)


# -- A4 ----------------------------------------------------------------------------------------------------------


def test_thinking_is_sent_back_with_each_blocks_own_signature(ask, make_bedrock):
    """Scenario A4."""
    events = [
        BEGIN,
        thought(0, text="a"), thought(0, signature="S1"), end(0),
        thought(1, text="b"), thought(1, signature="S"), thought(1, signature="2"), end(1),
        thought(2, redactedContent="AQ=="), end(2),
        thought(3, text="c"), end(3),
        thought(4, text=""), thought(4, signature="S4"), end(4),
        said(5, "so"), end(5),
        stop("end_turn"),
    ]  # fmt: skip
    agent, server = make_bedrock([turn(raw=events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    assert agent.messages[1]["content"][2] == {"reasoningContent": {"redactedContent": b"\x01"}}
    assert server.requests[1].body["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "a", "signature": "S1"}}},
        {"reasoningContent": {"reasoningText": {"text": "b", "signature": "S2"}}},
        {"reasoningContent": {"redactedContent": "AQ=="}},
        {"reasoningContent": {"reasoningText": {"text": "c"}}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "S4"}}},
        {"text": "so"},
    ]


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
def test_arguments_that_are_no_object_do_not_run_the_tool(ask, make_bedrock, purge, purged, raw):
    """Scenario A5."""
    agent, server = make_bedrock([use("purge", raw, id="T1"), "ok"], tools=[purge])

    assert ask(agent, "go").stop_reason == "end_turn"

    assert purged == []
    asked, answered = server.requests[1].body["messages"][1:]
    assert uses_of(asked) == [{"toolUseId": "T1", "name": "purge", "input": {}}]
    result = answered["content"][0]["toolResult"]
    assert (result["toolUseId"], result["status"]) == ("T1", "error")
    assert "JSON" in result["content"][0]["text"]


@pytest.mark.parametrize("raw", ["", "   "])
def test_blank_arguments_are_an_empty_object(ask, make_bedrock, purge, purged, raw):
    """Scenario A5."""
    agent, _ = make_bedrock([use("purge", raw), "ok"], tools=[purge])

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
    http_fault(429, "ThrottlingException", "Too many tokens per minute, please wait before trying again."),
    http_fault(400, "ValidationException", "messages.0.content is too long for this field"),
    http_fault(400, "ValidationException", "The maximum tokens you requested exceeds the model limit of 2048"),
]


@pytest.mark.parametrize("spelling", [str, str.upper, str.lower])
@pytest.mark.parametrize("words", OVERFLOWS)
def test_an_overflow_is_known_by_its_words(make_bedrock, words, spelling):
    """Scenario A6."""
    agent, _ = make_bedrock([http_fault(400, "ValidationException", spelling(words))])

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("go")

    assert spelling(words).rstrip(".") in str(caught.value)


def test_an_overflow_inside_the_stream_is_known_too(make_bedrock):
    """The kind behind A6."""
    agent, _ = make_bedrock([stream_fault("validationException", OVERFLOWS[0])])

    with pytest.raises(ContextWindowOverflowException):
        agent("go")


@pytest.mark.parametrize("fault", NO_OVERFLOWS, ids=lambda fault: fault.message)
def test_what_only_looks_like_an_overflow_is_none(make_bedrock, fault):
    """Scenario A6."""
    agent, _ = make_bedrock([fault], retry_strategy=None)

    with pytest.raises(ModelError) as caught:
        agent("go")

    assert not isinstance(caught.value, ContextWindowOverflowException)
    assert fault.message.rstrip(".") in str(caught.value)


# -- A13 ---------------------------------------------------------------------------------------------------------


def test_half_an_emoji_reaches_the_provider_as_legal_text(ask, make_bedrock):
    """Scenario A13."""

    @tool
    def broken() -> str:
        """Gives half an emoji."""
        return "bad \ud83d end"

    agent, server = make_bedrock([use("broken", {}), "ok"], tools=[broken], system_prompt="s \ud83d")

    ask(agent, "p \ud83d")

    body = server.requests[1].body
    assert body["system"] == [{"text": "s \ufffd"}]
    assert body["messages"][0]["content"] == [{"text": "p \ufffd"}]
    assert body["messages"][2]["content"][0]["toolResult"]["content"] == [{"text": "bad \ufffd end"}]


# -- A18 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bad name!", "admin.tools.list", "名前", "", "x" * 65])
def test_a_name_that_the_model_invents_is_sent_back_legal(ask, make_bedrock, calculators, name):
    """Scenario A18."""
    agent, server = make_bedrock([use(name, {}, id="T1"), "ok"], tools=calculators)

    assert ask(agent, "go").stop_reason == "end_turn"

    asked, answered = server.requests[1].body["messages"][1:]
    assert LEGAL_NAME.fullmatch(uses_of(asked)[0]["name"])
    assert answered["content"][0]["toolResult"]["status"] == "error"


# -- A22 ---------------------------------------------------------------------------------------------------------

TRANSIENT = {
    "throttling": 429, "serviceUnavailable": 503, "modelNotReady": 429,
    "internalServer": 500, "modelTimeout": 408, "modelStreamError": 424,
}  # fmt: skip
BEFORE = {
    spelling: http_fault(status, spelling, "it failed")
    for code, status in TRANSIENT.items()
    for spelling in (f"{code}Exception", f"{code[0].upper()}{code[1:]}Exception")
}
IN_STREAM = {
    **{
        f"{code}Exception": stream_fault(f"{code}Exception", "it failed", after=["half"])
        for code in (
            "throttling",
            "serviceUnavailable",
            "internalServer",
            "modelStreamError",
            "modelNotReady",
            "modelTimeout",
        )
    },
    **{
        f"{code}Exception, not modelled": stream_fault(f"{code}Exception", "it failed", after=["half"], modelled=False)
        for code in ("Throttling", "ServiceUnavailable", "ModelNotReady", "ModelTimeout", "InternalServer")
    },
    "dropped connection": turn("half", cut=True),
    "read timeout": turn("half", stall=True),
}


@pytest.mark.parametrize("fault", [*BEFORE.values(), *IN_STREAM.values()], ids=[*BEFORE, *IN_STREAM])
def test_a_transient_error_is_repeated_and_consumers_are_told(make_bedrock, events_of, shape, waits, fault):
    """Scenario A22."""
    from botocore.config import Config

    settings = {"boto_client_config": Config(read_timeout=0.3)}
    agent, server = make_bedrock([fault, "whole"], settings, retry_strategy=ModelRetryStrategy(jitter=0))

    events = events_of(agent, "go")

    result = events[-1]["result"]
    assert (server.calls, waits) == (2, [4])
    assert (result.metrics.model_calls, result.metrics.cycle_count, str(result)) == (2, 1, "whole\n")
    (told,) = [event for event in events if "attempt_discarded" in event]
    before = events[: events.index(told)]
    assert "".join(event["data"] for event in before if "data" in event) == (
        "half" if fault in IN_STREAM.values() else ""
    )
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]


@pytest.mark.parametrize("code", ["AccessDeniedException", "accessDeniedException"])
def test_a_refusal_is_not_repeated(ask, make_bedrock, waits, code):
    """Scenario A22."""
    agent, server = make_bedrock([http_fault(403, code, "not yours"), "whole"])

    with pytest.raises(ModelAuthError, match="not yours"):
        ask(agent, "go")

    assert (server.calls, waits) == (1, [])
    assert str(ask(agent, "again")) == "whole\n"


def test_an_error_that_stays_is_raised_with_the_providers_words(make_bedrock, waits):
    """The kind behind A22."""
    fault = http_fault(503, "ServiceUnavailableException", "come back later")
    agent, server = make_bedrock([fault] * 3, retry_strategy=ModelRetryStrategy(max_attempts=3, jitter=0))

    with pytest.raises(ModelUnavailableError, match="come back later"):
        agent("go")

    assert (server.calls, waits) == (3, [4, 8])


# -- A24 ---------------------------------------------------------------------------------------------------------

POINT = {"cachePoint": {"type": "default"}}


def answers(count):
    thinking = [said(0, "an answer"), end(0), thought(1, text="hm"), thought(1, signature="S"), end(1)]
    return [turn(raw=[BEGIN, *thinking, stop("end_turn")]) for _ in range(count)]


@pytest.mark.parametrize("auto", [{"strategy": "auto"}, None], ids=["auto", "manual"])
def test_cache_points_are_few_and_where_the_provider_takes_them(make_bedrock, calculators, auto):
    """Scenario A24."""
    settings = {"cache_config": auto, "cache_tools": "default"}
    agent, server = make_bedrock(answers(6), settings, tools=calculators, system_prompt=[{"text": "sys"}, POINT])
    prompts = [[{"text": f"long question {n}"}, POINT, {"text": f"it is {n} o'clock"}] for n in range(6)]
    given = copy.deepcopy(prompts)

    for prompt in prompts:
        agent(prompt)

    assert prompts == given
    assert all(POINT in message["content"] for message in agent.messages[::2])
    for received in server.requests:
        body = received.body
        lists = [body["system"], body["toolConfig"]["tools"], *[m["content"] for m in body["messages"]]]
        places = [(blocks, i) for blocks in lists for i, block in enumerate(blocks) if "cachePoint" in block]
        assert len(places) <= 4
        for blocks, i in places:
            assert i > 0
            assert "reasoningContent" not in blocks[i - 1]

        assert body["messages"][-1]["content"][1:2] == [POINT]
        assert len([block for block in body["messages"][-1]["content"] if "cachePoint" in block]) == 1


def test_what_was_written_to_the_cache_is_read_by_the_next_request(make_bedrock):
    """The kind behind A24: a tail that only moves is written with each request and never read."""
    agent, server = make_bedrock(answers(4), {"cache_config": {"strategy": "auto"}})
    for number in range(4):
        agent(f"question {number}")

    def cached(body):
        blocks = [block for message in body["messages"] for block in message["content"]]
        places = [i for i, block in enumerate(blocks) if "cachePoint" in block]
        return [[block for block in blocks[:i] if "cachePoint" not in block] for i in places]

    requests = [cached(received.body) for received in server.requests]
    assert [len(prefixes) for prefixes in requests] == [1, 2, 2, 2]
    for before, after in pairwise(requests):
        assert before[-1] in after
