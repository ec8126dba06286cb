from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.errors import IncompleteStreamError, MalformedStreamError
from ropewalk.kits.messages.assembly import Assembly
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.rules import is_legal_id

USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}


def assembled(events, history=None):
    assembly = Assembly()
    for event in events:
        assembly.feed(event)

    return assembly.finish((history or History()).free_id)


def start(index, tool_use_id, name):
    head = {"toolUse": {"toolUseId": tool_use_id, "name": name}}
    return {"contentBlockStart": {"contentBlockIndex": index, "start": head}}


def delta(index, **piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}


def arguments(index, text):
    return delta(index, toolUse={"input": text})


def thinking(index, **piece):
    return delta(index, reasoningContent=piece)


def stop(index):
    return {"contentBlockStop": {"contentBlockIndex": index}}


def end(reason="end_turn"):
    return {"messageStop": {"stopReason": reason}}


def content(*events, reason="end_turn"):
    return assembled([*events, end(reason)]).message["content"]


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


# -- single rules ------------------------------------------------------------------------------------------------


def test_a_stream_without_a_stop_is_incomplete():
    with pytest.raises(IncompleteStreamError, match="without a messageStop"):
        assembled([delta(0, text="half")])


def test_two_calls_that_open_before_either_closes_keep_their_own_arguments():
    events = [start(0, "A", "add"), start(1, "B", "mul"), arguments(0, '{"a": 1,'), arguments(1, '{"a": 3,')]
    events += [delta(2, text="say"), arguments(0, ' "b": 2}'), arguments(1, ' "b": 4}'), stop(1), stop(0)]

    first, second, text = content(*events, reason="tool_use")

    assert first["toolUse"] == {"toolUseId": "A", "name": "add", "input": {"a": 1, "b": 2}}
    assert second["toolUse"] == {"toolUseId": "B", "name": "mul", "input": {"a": 3, "b": 4}}
    assert text == {"text": "say"}


def test_a_second_call_at_the_same_index_is_a_call_of_its_own():
    events = [start(0, "A", "f"), arguments(0, '{"a":1}'), start(0, "B", "g"), arguments(0, '{"b":2}')]

    assert [b["toolUse"]["input"] for b in content(*events)] == [{"a": 1}, {"b": 2}]


def test_arguments_with_neither_index_nor_start_go_to_the_call_that_is_streamed():
    events = [start(None, "A", "f"), arguments(None, '{"a":'), arguments(7, "1}")]

    assert [b["toolUse"]["input"] for b in content(*events)] == [{"a": 1}]


@pytest.mark.parametrize(
    ("given_stop", "blocks", "true_stop"),
    [
        ("end_turn", [start(0, "A", "f")], "tool_use"),
        ("stop_sequence", [start(0, "A", "f")], "tool_use"),
        ("tool_use", [delta(0, text="x")], "end_turn"),
        ("tool_use", [], "end_turn"),
        ("content_filtered", [delta(0, text="x")], "content_filtered"),
        ("", [delta(0, text="x")], "end_turn"),
        ("brand_new", [delta(0, text="x")], "brand_new"),
    ],
)
def test_the_stop_reason_is_what_the_content_bears_out(given_stop, blocks, true_stop):
    assert assembled([*blocks, end(given_stop)]).stop_reason == true_stop


def test_an_answer_cut_at_the_token_limit_has_a_text_in_place_of_each_call():
    outcome = assembled([delta(0, text="so"), start(1, "A", "add"), arguments(1, '{"a": '), end("max_tokens")])

    assert outcome.stop_reason == "max_tokens"
    assert [list(block) for block in outcome.message["content"]] == [["text"], ["text"]]
    assert "selected tool add" in outcome.message["content"][1]["text"]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("{", "not valid JSON"),
        ("[1]", "array"),
        ('"x"', "string"),
        ("1", "number"),
        ("true", "boolean"),
        ("null", "null"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": 1e999}', "not valid JSON"),
        ('{"a": -1e999}', "not valid JSON"),
        ('{"a": ' + "1" * 5000 + "}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
    ids=lambda value: value[:12],
)
def test_arguments_that_are_no_json_object_are_named_and_never_kept(raw, problem):
    outcome = assembled([start(0, "A", "f"), arguments(0, raw), end("tool_use")])

    assert problem in outcome.input_errors["A"]
    assert outcome.message["content"][0]["toolUse"]["input"] == {}


@pytest.mark.parametrize("raw", ["", "  ", "\n", None])
def test_blank_arguments_are_an_empty_object(raw):
    outcome = assembled([start(0, "A", "f"), arguments(0, raw), end("tool_use")])

    assert outcome.input_errors is None
    assert outcome.message["content"][0]["toolUse"]["input"] == {}


@pytest.mark.parametrize("piece", [{}, {"input": None}, {"input": ""}], ids=str)
def test_a_piece_of_arguments_that_says_nothing_is_passed_over(piece):
    events = [start(0, "A", "f"), delta(0, toolUse=piece), arguments(0, '{"a": 1}'), delta(0, toolUse=piece)]
    outcome = assembled([*events, end("tool_use")])

    assert outcome.input_errors is None
    assert outcome.message["content"][0]["toolUse"]["input"] == {"a": 1}


def test_ids_that_repeat_or_are_illegal_are_replaced_and_legal_ones_stay():
    history = History()
    history.add_assistant(
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "old", "name": "f", "input": {}}}]}
    )
    given_ids = ["A", "A", "old", "", "a|b", "x" * 80, None]
    events = [start(i, given_id, "f") for i, given_id in enumerate(given_ids)]

    ids = [b["toolUse"]["toolUseId"] for b in assembled([*events, end("tool_use")], history).message["content"]]

    assert ids[0] == "A"
    assert len(set(ids)) == 7
    assert "old" not in ids
    assert all(map(is_legal_id, ids))


def test_each_thinking_block_keeps_its_own_signature():
    events = [thinking(0, text="a"), thinking(0, signature="S1"), stop(0), thinking(1, text="b")]
    events += [
        thinking(1, signature="S"),
        thinking(1, signature="2"),
        stop(1),
        thinking(2, redactedContent=b"\x01"),
        stop(2),
    ]
    events += [thinking(3, text="c"), stop(3), thinking(4, text=""), thinking(4, signature="S3"), stop(4)]

    assert [b["reasoningContent"] for b in content(*events)] == [
        {"reasoningText": {"text": "a", "signature": "S1"}},
        {"reasoningText": {"text": "b", "signature": "S2"}},
        {"redactedContent": b"\x01"},
        {"reasoningText": {"text": "c"}},
        {"reasoningText": {"text": "", "signature": "S3"}},
    ]


def test_a_surrogate_pair_split_over_two_deltas_joins_and_a_lone_half_is_replaced():
    events = [delta(0, text="\ud83d"), delta(0, text="\ude42 and \ud83d end")]

    assert content(*events) == [{"text": "\U0001f642 and \ufffd end"}]


def test_citations_stay_with_their_text():
    events = [delta(0, text="fact"), delta(0, citation={"title": "T"}), stop(0), delta(1, citation={"title": "U"})]

    cited, bare = content(*events)

    assert cited["citationsContent"] == {"content": [{"text": "fact"}], "citations": [{"title": "T"}]}
    assert bare["citationsContent"]["citations"] == [{"title": "U"}]


def test_a_redacted_answer_is_replaced_and_asks_for_no_tool():
    redact = {"redactContent": {"redactAssistantContentMessage": "[gone]", "redactUserContentMessage": "[gone too]"}}
    outcome = assembled([start(0, "A", "f"), redact, end("guardrail_intervened")])

    assert outcome.message["content"] == [{"text": "[gone]"}]
    assert outcome.redact_input == "[gone too]"
    assert outcome.stop_reason == "guardrail_intervened"
    assert assembled([start(0, "A", "f"), redact, end("tool_use")]).stop_reason == "end_turn"


def test_a_cancelled_answer_keeps_a_text_that_has_citations():
    assembly = Assembly()
    for event in (delta(0, text="cited"), delta(0, citation={"title": "T"})):
        assembly.feed(event)

    (kept,) = assembly.cancelled().message["content"]
    assert kept == {"citationsContent": {"content": [{"text": "cited"}], "citations": [{"title": "T"}]}}


def test_the_signature_of_a_call_stays_with_it():
    head = {"toolUse": {"toolUseId": "T1", "name": "add", "signature": "c2lnbg=="}}
    signed = {"contentBlockStart": {"contentBlockIndex": 0, "start": head}}
    first, second = content(signed, arguments(0, "{}"), stop(0), start(1, "T2", "add"), reason="tool_use")

    assert first == {"toolUse": {"toolUseId": "T1", "name": "add", "input": {}, "signature": "c2lnbg=="}}
    assert second == {"toolUse": {"toolUseId": "T2", "name": "add", "input": {}}}


@pytest.mark.parametrize("signature", [None, "", 7, b"x", ["x"]])
def test_what_is_no_signature_of_a_call_is_passed_over(signature):
    head = {"toolUse": {"toolUseId": "T1", "name": "add", "signature": signature}}
    (use,) = content({"contentBlockStart": {"contentBlockIndex": 0, "start": head}}, reason="tool_use")

    assert use == {"toolUse": {"toolUseId": "T1", "name": "add", "input": {}}}


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        ({"inputTokens": 7, "outputTokens": 3, "totalTokens": 0}, (7, 3, 10)),
        ({"inputTokens": 7, "outputTokens": 3, "totalTokens": 4}, (7, 3, 10)),
        ({"inputTokens": 7, "outputTokens": 3, "totalTokens": 30}, (7, 3, 30)),
        ({"inputTokens": -7, "outputTokens": 3}, (0, 3, 3)),
        ({"inputTokens": 7.0, "outputTokens": 3.0}, (7, 3, 10)),
        ({"inputTokens": "7", "outputTokens": None, "totalTokens": float("nan")}, (0, 0, 0)),
    ],
)
def test_counts_of_tokens_are_whole_never_below_zero_and_their_total_holds_both(reported, counted):
    usage = assembled([end(), {"metadata": {"usage": reported}}]).usage

    assert tuple(usage[key] for key in ("inputTokens", "outputTokens", "totalTokens")) == counted
    assert all(type(count) is int for count in usage.values())


def test_usage_is_known_before_the_stream_ends():
    assembly = Assembly()
    assembly.feed({"metadata": {"usage": {"inputTokens": 4}}})

    assert assembly.usage == {"inputTokens": 4, "outputTokens": 0, "totalTokens": 4}
