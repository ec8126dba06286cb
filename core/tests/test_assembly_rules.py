"""Single rules of putting a stream together."""

from __future__ import annotations

import pytest
from stream_fakes import arguments, assembled, content, delta, end, start, stop, thinking

from ropewalk.errors import IncompleteStreamError
from ropewalk.kits.messages.assembly import Assembly
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.rules import is_legal_id


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


@pytest.mark.parametrize("piece", [{"text": None}, {"redactedContent": None}, {"signature": None}], ids=str)
def test_a_piece_of_thinking_that_says_nothing_is_passed_over(piece):
    assert content(thinking(0, **piece), thinking(0, text="a"), thinking(0, **piece), stop(0)) == [
        {"reasoningContent": {"reasoningText": {"text": "a"}}}
    ]
