"""A conversation as text."""

from __future__ import annotations

from ropewalk.kits.context.transcript import clipped, transcript

CALL = {
    "role": "assistant",
    "content": [{"text": "I look."}, {"toolUse": {"toolUseId": "1", "name": "look", "input": {"at": "x"}}}],
}
RESULT = {
    "role": "user",
    "content": [
        {"toolResult": {"toolUseId": "1", "status": "error", "content": [{"text": "gone"}, {"json": {"code": 4}}]}},
        {"text": "And now?"},
    ],
}


def said(*blocks):
    return transcript([{"role": "user", "content": list(blocks)}])


def test_calls_and_results_are_told_in_words():
    assert transcript([CALL, RESULT]) == (
        'Assistant: I look.\n\nAssistant calls look: {"at": "x"}\n\n'
        'Result of look (an error): gone {"code": 4}\n\nUser: And now?'
    )


def test_a_result_without_its_call_is_of_a_tool():
    assert transcript([RESULT]).startswith("Result of a tool (an error): gone")


def test_an_empty_result_says_so():
    empty = {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": []}}]}
    assert transcript([empty]) == "Result of a tool: (empty)"


def test_media_are_named_and_not_shown():
    image = {"image": {"format": "png", "source": {"bytes": b"12345"}}}
    document = {"document": {"format": "pdf", "name": "plan", "source": {"bytes": b"12345"}}}
    assert said(image, document) == "User: [image: png]\n\nUser: [document: plan pdf]"


def test_thinking_and_cache_points_are_left_out():
    thinking = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    assert transcript(
        [{"role": "assistant", "content": [thinking, {"text": "Yes."}, {"cachePoint": {"type": "default"}}]}]
    ) == ("Assistant: Yes.")


def test_citations_and_guarded_text_are_text():
    cited = {"citationsContent": {"content": [{"text": "as said"}], "citations": []}}
    assert said(cited, {"guardContent": {"text": {"text": "guarded"}}}) == "User: as said\n\nUser: guarded"


def test_without_a_limit_every_word_is_there():
    assert said({"text": "x" * 100_000}) == "User: " + "x" * 100_000


def test_long_blocks_lose_their_middle_before_short_ones_lose_anything():
    messages = [{"role": "user", "content": [{"text": "a" * 90_000}, {"text": "short"}, {"text": "z" * 3_000}]}]

    text = transcript(messages, 7_000)

    assert len(text) <= 7_000
    assert "User: short" in text
    assert "characters left out" in text


def test_what_is_still_too_long_loses_the_middle_of_the_whole():
    messages = [{"role": "user", "content": [{"text": f"number {i}"}]} for i in range(1_000)]

    text = transcript(messages, 2_000)

    assert len(text) <= 2_000
    assert text.startswith("User: number 0\n")
    assert text.endswith("User: number 999")


def test_a_text_that_fits_is_not_clipped():
    assert clipped("four", 4) == "four"
    assert len(clipped("x" * 100, 60)) <= 60
