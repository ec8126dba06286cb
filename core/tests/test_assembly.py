from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_fakes import USAGE, arguments, assembled, delta, end, start, stop, thinking

from ropewalk.errors import IncompleteStreamError, MalformedStreamError
from ropewalk.kits.messages.assembly import Assembly
from ropewalk.kits.messages.rules import is_legal_id

# -- one message, however it is cut and interleaved --------------------------------------------------------------

words = st.text(st.sampled_from(["a", "b", '"', "\\", " ", "\u00e9", "\U0001f642"]), max_size=6)
json_objects = st.dictionaries(
    words, st.none() | st.booleans() | st.integers() | words | st.lists(words, max_size=2), max_size=3
)


def cut(text, chance):
    """The text in pieces, some of them empty."""
    cuts = sorted(chance.randint(0, len(text)) for _ in range(chance.randint(0, 4)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def block_events(index, kind, value, chance):
    """A block as (its content in the message, its events)."""
    text = "".join(value)
    if kind == "text":
        return [{"text": text}] if text else [], [delta(index, text=p) for p in cut(text, chance)]

    if kind == "reasoning":
        signed = chance.choice(["", "S", "S" * 9])
        kept = {"text": text, "signature": signed} if signed else {"text": text}
        events = [thinking(index, text=p) for p in cut(text, chance)]
        events += [thinking(index, signature=s) for s in cut(signed, chance)]
        return [{"reasoningContent": {"reasoningText": kept}}] if text or signed else [], events

    raw = json.dumps(value, ensure_ascii=chance.choice([True, False]))
    shown = [{"toolUse": {"toolUseId": f"id{index}", "name": f"tool{index}", "input": value}}]
    return shown, [start(index, f"id{index}", f"tool{index}"), *(arguments(index, p) for p in cut(raw, chance))]


kinds = st.tuples(st.sampled_from(["text", "tool", "reasoning"]), json_objects)


@st.composite
def interleaved(draw):
    """(The message's content, the events in one of the orders that mean it)."""
    chance = draw(st.randoms(use_true_random=False))
    drawn = draw(st.lists(kinds, min_size=1, max_size=4))
    blocks = [block_events(index, kind, value, chance) for index, (kind, value) in enumerate(drawn)]
    queues = [[*events, stop(index)] for index, (_, events) in enumerate(blocks)]
    mixed = []
    while any(queues):
        mixed.append(chance.choice([q for q in queues if q]).pop(0))

    return [piece for shown, _ in blocks for piece in shown], mixed


@given(interleaved())
def test_any_interleaving_and_cutting_of_blocks_gives_the_same_message(case):
    expected, events = case
    outcome = assembled([*events, end(), {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 5}}}])

    assert outcome.message == {"role": "assistant", "content": expected}
    assert outcome.stop_reason == ("tool_use" if any("toolUse" in b for b in expected) else "end_turn")
    assert (outcome.usage, outcome.latency_ms, outcome.input_errors) == (USAGE, 5, None)


@given(interleaved(), st.data())
def test_a_cancelled_answer_keeps_texts_and_never_a_tool_use(case, data):
    _, events = case
    assembly = Assembly()
    for event in events[: data.draw(st.integers(0, len(events)))]:
        assembly.feed(event)

    outcome = assembly.cancelled()
    assert outcome.stop_reason == "cancelled"
    assert not any("toolUse" in block for block in outcome.message["content"])
    assert not outcome.message["content"] or any("text" in block for block in outcome.message["content"])


# -- whatever else comes -----------------------------------------------------------------------------------------

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
indices = st.sampled_from([0, 1, 2, None, -1, True, "0", 1.5, float("nan"), 10**400, [], {}, "missing"])
pieces = st.one_of(
    st.fixed_dictionaries({"text": st.text(max_size=3) | junk}),
    st.fixed_dictionaries({"toolUse": st.fixed_dictionaries({"input": st.sampled_from(['{"a":', "1}", "[]"]) | junk})}),
    st.fixed_dictionaries({"toolUse": junk}),
    st.fixed_dictionaries(
        {
            "reasoningContent": st.one_of(
                st.fixed_dictionaries({"text": st.text(max_size=3) | junk}),
                st.fixed_dictionaries({"signature": st.text(max_size=3) | junk}),
                st.fixed_dictionaries({"redactedContent": st.binary(max_size=3) | junk}),
                junk,
            )
        }
    ),
    st.fixed_dictionaries({"citation": junk}),
    junk,
)
heads = st.one_of(
    st.fixed_dictionaries({"toolUse": st.fixed_dictionaries({"toolUseId": st.sampled_from(["A", ""]) | junk})}),
    st.fixed_dictionaries({"toolUse": st.fixed_dictionaries({"name": st.sampled_from(["f", "\ud800"]) | junk})}),
    st.fixed_dictionaries({"toolUse": junk}),
    junk,
)


def placed(body):
    """The body with an index, which may be missing."""
    return st.tuples(indices, body).map(
        lambda pair: pair[1] if pair[0] == "missing" else {"contentBlockIndex": pair[0], **pair[1]}
    )


garbage = st.one_of(
    placed(st.fixed_dictionaries({"delta": pieces})).map(lambda b: {"contentBlockDelta": b}),
    placed(st.fixed_dictionaries({"start": heads})).map(lambda b: {"contentBlockStart": b}),
    placed(st.just({})).map(lambda b: {"contentBlockStop": b}),
    st.sampled_from(["end_turn", "tool_use", "max_tokens", "odd"]).map(end),
    junk.map(lambda value: {"messageStop": {"stopReason": value}}),
    st.fixed_dictionaries({"usage": junk, "metrics": st.fixed_dictionaries({"latencyMs": junk}) | junk}).map(
        lambda body: {"metadata": body}
    ),
    st.fixed_dictionaries({"redactUserContentMessage": junk, "redactAssistantContentMessage": junk}).map(
        lambda body: {"redactContent": body}
    ),
    st.sampled_from(
        ["contentBlockDelta", "contentBlockStart", "metadata", "redactContent", "messageStop", "odd"]
    ).flatmap(lambda key: junk.map(lambda value: {key: value})),
    junk,
)


@settings(max_examples=500)
@given(st.lists(garbage, max_size=7), st.booleans())
def test_garbage_is_a_malformed_or_incomplete_stream_or_a_valid_outcome(events, stopped):
    try:
        outcome = assembled([*events, end("tool_use")] if stopped else events)
    except (MalformedStreamError, IncompleteStreamError):
        return

    assert outcome.message["role"] == "assistant"
    assert isinstance(outcome.stop_reason, str)
    assert isinstance(outcome.latency_ms, int)
    assert outcome.redact_input is None or isinstance(outcome.redact_input, str)
    assert all(isinstance(outcome.usage[key], int) for key in ("inputTokens", "outputTokens", "totalTokens"))
    for block in outcome.message["content"]:
        if "text" in block:
            block["text"].encode()
        elif "toolUse" in block:
            assert is_legal_id(block["toolUse"]["toolUseId"])
            block["toolUse"]["name"].encode()
            json.dumps(block["toolUse"]["input"], allow_nan=False, ensure_ascii=False).encode()
        elif "reasoningContent" in block:
            inner = block["reasoningContent"]
            assert isinstance(inner.get("redactedContent", b""), bytes)
            assert isinstance(inner.get("reasoningText", {"text": ""})["text"], str)


@given(st.lists(garbage, max_size=7))
def test_garbage_before_a_cancel_gives_an_outcome_or_a_malformed_stream(events):
    assembly = Assembly()
    try:
        for event in events:
            assembly.feed(event)
    except MalformedStreamError:
        pass

    assert assembly.cancelled().stop_reason == "cancelled"


@pytest.mark.parametrize(
    "event",
    [
        None,
        "text",
        {"contentBlockDelta": {}},
        delta(0, text=3),
        delta([], text="x"),
        {"contentBlockStart": {"start": {"toolUse": "add"}}},
        {"contentBlockStart": {"contentBlockIndex": {}, "start": {"toolUse": {"name": "f"}}}},
        {"metadata": {"metrics": {"latencyMs": "soon"}}},
        {"metadata": {"usage": ["many"]}},
        thinking(0, text=7),
        thinking(0, signature=7),
        thinking(0, redactedContent="text"),
    ],
    ids=repr,
)
def test_an_event_of_no_known_shape_is_malformed_and_shown(event):
    with pytest.raises(MalformedStreamError):
        assembled([event, end()])
