"""Streaming assembly: what providers send is not always what they document (scenarios A1 to A4)."""

from __future__ import annotations

import re

import pytest

from ropewalk import tool
from ropewalk.errors import IncompleteStreamError, MaxTokensReachedException, ModelError
from ropewalk_testing import assert_valid_history, text, turn, use

BEGIN = {"messageStart": {"role": "assistant"}}
LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def head(index, tool_use_id, name):
    start = {"toolUse": {"toolUseId": tool_use_id, "name": name}}
    return {"contentBlockStart": {"contentBlockIndex": index, "start": start}}


def args(index, piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}}


def said(index, piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": piece}}}


def thought(index, **piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"reasoningContent": piece}}}


def end(index):
    return {"contentBlockStop": {"contentBlockIndex": index}}


def stop(reason="tool_use"):
    return {"messageStop": {"stopReason": reason}}


def unindexed(event):
    """The same event without its block index."""
    ((key, value),) = event.items()
    return {key: {name: item for name, item in value.items() if name != "contentBlockIndex"}}


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

WORDS = [said(2, "I "), said(2, "calculate")]
INTERLEAVED = {
    "as reported": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"),
        args(0, '{"a": 1,'), args(1, '{"a": 3,'), args(0, ' "b": 2}'), args(1, ' "b": 4}'), end(0), end(1), stop(),
    ],
    "with text between": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"), args(0, '{"a": 1,'), WORDS[0], args(1, '{"a": 3,'),
        args(0, ' "b": 2}'), WORDS[1], args(1, ' "b": 4}'), end(2), end(0), end(1), stop(),
    ],
    "stops the other way round": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"),
        args(0, '{"a": 1,'), args(1, '{"a": 3,'), args(0, ' "b": 2}'), args(1, ' "b": 4}'), end(1), end(0), stop(),
    ],
    "heads the other way round": [
        BEGIN, head(1, "B", "mul"), head(0, "A", "add"),
        args(1, '{"a": 3, "b": 4}'), args(0, '{"a": 1, "b": 2}'), end(1), end(0), stop(),
    ],
    "without stops": [
        BEGIN, head(0, "A", "add"), args(0, '{"a": 1, "b": 2}'), head(1, "B", "mul"), args(1, '{"a": 3, "b": 4}'),
        stop(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", INTERLEAVED.values(), ids=INTERLEAVED)
def test_interleaved_tool_blocks_stay_two_calls(ask, make_agent, calls, calculators, events):
    """Scenario A1."""
    agent, _ = make_agent([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert uses_of(agent.messages[1]) == [
        {"toolUseId": "A", "name": "add", "input": {"a": 1, "b": 2}},
        {"toolUseId": "B", "name": "mul", "input": {"a": 3, "b": 4}},
    ]
    assert_valid_history(agent.messages)


def test_interleaved_text_stays_separate(ask, make_agent, calculators):
    """Scenario A1."""
    agent, _ = make_agent([turn(raw=INTERLEAVED["with text between"]), "ok"], tools=calculators)

    ask(agent, "go")

    assert [block["text"] for block in agent.messages[1]["content"] if "text" in block] == ["I calculate"]


# -- A2, as far as a stream in Converse's form can show it --------------------------------------------------------


def test_a_new_id_at_a_known_index_never_merges_into_the_other_call(ask, make_agent, calls, calculators):
    """Scenario A2."""
    events = [
        BEGIN, head(0, "c1", "add"), args(0, '{"a":1,"b":2}'),
        head(0, "c2", "mul"), args(0, '{"a":3,'), args(0, '"b":4}'),
        end(0), stop(),
    ]  # fmt: skip
    agent, _ = make_agent([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert [(u["toolUseId"], u["name"]) for u in uses_of(agent.messages[1])] == [("c1", "add"), ("c2", "mul")]
    assert_valid_history(agent.messages)


def test_a_fragment_at_an_unknown_index_goes_to_the_call_being_streamed(ask, make_agent, calls, calculators):
    """Scenario A2."""
    events = [
        BEGIN, head(0, "c1", "add"), args(0, '{"a":1,"b":2}'),
        head(0, "c2", "mul"), args(0, '{"a":3,"b":'), args(1, "4}"),
        stop(),
    ]  # fmt: skip
    agent, _ = make_agent([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]


def test_fragments_without_an_index_go_to_the_call_being_streamed(ask, make_agent, calls, calculators):
    """Scenario A2."""
    events = [
        BEGIN,
        *[unindexed(e) for e in (head(0, "c1", "add"), args(0, '{"a":1,'), args(0, '"b":2}'))],
        *[unindexed(e) for e in (head(1, "c2", "mul"), args(1, '{"a":3,'), args(1, '"b":4}'))],
        stop(),
    ]
    agent, _ = make_agent([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == [("add", 1, 2), ("mul", 3, 4)]
    assert len(uses_of(agent.messages[1])) == 2


def test_text_without_block_starts_and_indexes_is_kept(ask, make_agent):
    """Scenario A2."""
    events = [BEGIN, unindexed(said(0, "half ")), unindexed(said(0, "and half")), stop("end_turn")]
    agent, _ = make_agent([turn(raw=events)])

    assert str(ask(agent, "go")) == "half and half\n"


@pytest.mark.parametrize(
    "head_use", [{"name": "add"}, {"name": "add", "toolUseId": None}, {"name": "add", "toolUseId": ""}]
)
def test_a_missing_id_is_made_once_and_reused(ask, make_agent, calls, calculators, tool_results, head_use):
    """Scenario A2."""
    events = [
        BEGIN,
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": head_use}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": None}}}},
        args(0, '{"a":1,"b":2}'),
        end(0),
        stop(),
    ]
    agent, model = make_agent([turn(raw=events), "ok"], tools=calculators)

    ask(agent, "go")

    ((made),) = [u["toolUseId"] for u in uses_of(agent.messages[1])]
    assert LEGAL_ID.fullmatch(made)
    assert [result["toolUseId"] for result in tool_results(agent.messages)] == [made]
    assert uses_of(model.requests[1].messages[1])[0]["toolUseId"] == made
    assert calls == [("add", 1, 2)]


def test_two_missing_ids_are_two_different_ids(ask, make_agent, calculators):
    """Scenario A2."""
    start = {"toolUse": {"name": "add"}}
    pieces = [
        [{"contentBlockStart": {"contentBlockIndex": i, "start": start}}, args(i, '{"a":1,"b":2}'), end(i)]
        for i in (0, 1)
    ]
    agent, _ = make_agent([turn(raw=[BEGIN, *pieces[0], *pieces[1], stop()]), "ok"], tools=calculators)

    ask(agent, "go")

    assert len({u["toolUseId"] for u in uses_of(agent.messages[1])}) == 2
    assert_valid_history(agent.messages)


# -- A3 ----------------------------------------------------------------------------------------------------------


def test_a_tool_block_with_end_turn_is_run(ask, make_agent, calls, calculators):
    """Scenario A3 a."""
    agent, _ = make_agent([turn(use("add", {"a": 1, "b": 2}), stop="end_turn"), "3"], tools=calculators)

    result = ask(agent, "go")

    assert (calls, str(result)) == ([("add", 1, 2)], "3\n")


def test_tool_use_without_a_tool_block_is_a_plain_end(ask, make_agent, calculators):
    """Scenario A3 b."""
    agent, model = make_agent([turn("just words", stop="tool_use")], tools=calculators)

    result = ask(agent, "go")

    assert (result.stop_reason, str(result), model.calls) == ("end_turn", "just words\n", 1)


BROKEN_OFF = {
    "c: in a text": [BEGIN, said(0, "half an "), said(0, "answer")],
    "c: after a text": [BEGIN, said(0, "an answer"), end(0)],
    "d: in a tool block": [BEGIN, head(0, "T1", "add"), args(0, '{"a": 1, "b": 2}')],
    "d: after a tool block": [BEGIN, head(0, "T1", "add"), args(0, '{"a": 1, "b": 2}'), end(0)],
    "e: no event": [],
    "e: only the start": [BEGIN],
}


@pytest.mark.parametrize("events", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_stream_that_just_ends_is_a_retryable_error_and_stores_nothing(ask, make_agent, calls, calculators, events):
    """Scenario A3 c, d, e."""
    # The retry plugin is switched off: it would repeat the call.
    agent, _ = make_agent(["fine", turn(raw=events), "back"], tools=calculators, retry_strategy=None)
    ask(agent, "one")
    before = list(agent.messages)

    with pytest.raises(IncompleteStreamError) as caught:
        ask(agent, "two")

    assert isinstance(caught.value, ModelError)
    assert caught.value.retryable
    assert (calls, list(agent.messages)) == ([], before)
    assert str(ask(agent, "three")) == "back\n"
    assert_valid_history(agent.messages)


def test_a_call_cut_at_the_token_limit_is_not_run(ask, make_agent, calls, calculators):
    """Scenario A3 f."""
    cut = turn(text("I will"), use("add", '{"a": 1, "b"', id="T1"), stop="max_tokens")
    agent, _ = make_agent([cut, "back"], tools=calculators)

    with pytest.raises(MaxTokensReachedException):
        ask(agent, "go")

    assert calls == []
    assert not uses_of(agent.messages[-1])
    ask(agent, "go on")
    assert_valid_history(agent.messages)


# -- A4 ----------------------------------------------------------------------------------------------------------


def test_each_thinking_block_keeps_its_own_signature(ask, make_agent):
    """Scenario A4."""
    events = [
        BEGIN,
        thought(0, text="a"), thought(0, signature="S1"), end(0),
        thought(1, text="b"), thought(1, signature="S"), thought(1, signature="2"), end(1),
        thought(2, redactedContent=b"\x01"), end(2),
        said(3, "so"), end(3),
        stop("end_turn"),
    ]  # fmt: skip
    agent, model = make_agent([turn(raw=events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    expected = [
        {"reasoningContent": {"reasoningText": {"text": "a", "signature": "S1"}}},
        {"reasoningContent": {"reasoningText": {"text": "b", "signature": "S2"}}},
        {"reasoningContent": {"redactedContent": b"\x01"}},
        {"text": "so"},
    ]
    assert agent.messages[1]["content"] == expected
    assert model.requests[1].messages[1]["content"] == expected


def test_a_missing_signature_stays_missing(ask, make_agent):
    """Scenario A4."""
    events = [BEGIN, thought(0, text="a"), end(0), said(1, "so"), end(1), stop("end_turn")]
    agent, model = make_agent([turn(raw=events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    assert model.requests[1].messages[1]["content"][0] == {"reasoningContent": {"reasoningText": {"text": "a"}}}


@pytest.mark.parametrize("first", [[thought(0, text="")], []], ids=["with an empty text", "without a text"])
def test_a_signature_without_text_is_kept(ask, make_agent, first):
    """Scenario A4."""
    events = [BEGIN, *first, thought(0, signature="S1"), end(0), said(1, "so"), end(1), stop("end_turn")]
    agent, model = make_agent([turn(raw=events), "ok"])

    ask(agent, "go")
    ask(agent, "again")

    expected = {"reasoningContent": {"reasoningText": {"text": "", "signature": "S1"}}}
    assert model.requests[1].messages[1]["content"] == [expected, {"text": "so"}]


def test_a_signature_does_not_leak_into_the_next_block(ask, make_agent):
    """Scenario A4."""
    events = [
        BEGIN,
        thought(0, text="a"), thought(0, signature="S1"), end(0),
        thought(1, text="b"), end(1),
        said(2, "so"), end(2),
        stop("end_turn"),
    ]  # fmt: skip
    agent, _ = make_agent([turn(raw=events)])

    ask(agent, "go")

    assert agent.messages[1]["content"][1] == {"reasoningContent": {"reasoningText": {"text": "b"}}}
