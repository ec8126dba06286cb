"""Asking for a summary."""

from __future__ import annotations

import pytest

from ropewalk import ContextWindowOverflowException, ModelOutcome
from ropewalk.kits.context.folding import fold
from ropewalk.kits.context.summaries import (
    SummaryCancelledError,
    SummaryError,
    answer_of,
    checked_answer,
    prompt_of,
    request_of,
    room_of,
    summary_of,
)


def folding(size=4_000):
    words = {"role": "user", "content": [{"text": "w" * size}]}
    return fold([words, {"role": "assistant", "content": [{"text": "ok"}]}], 1, set())


def outcome(text, stop="end_turn"):
    return ModelOutcome({"role": "assistant", "content": [{"text": text}] if text else []}, stop)


class Summarizer:
    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []

    async def __call__(self, prompt):
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer

        return answer


async def test_a_short_summary_is_taken_without_its_blanks():
    assert await summary_of(folding(), Summarizer("  all is well \n"), 8_000) == "all is well"


@pytest.mark.parametrize(("text", "message"), [("", "nothing"), (" \n", "nothing"), ("s" * 4_000, "1000 tokens")])
async def test_a_summary_that_is_none_is_refused(text, message):
    with pytest.raises(SummaryError, match=message):
        await summary_of(folding(), Summarizer(text), None)


async def test_a_prompt_that_does_not_fit_is_made_smaller_twice():
    full = ContextWindowOverflowException("full")
    summarizer = Summarizer(full, full, "fits")

    assert await summary_of(folding(40_000), summarizer, None) == "fits"

    sizes = [len(prompt) for prompt in summarizer.prompts]
    assert sizes[0] > sizes[1] > sizes[2]


async def test_a_prompt_that_never_fits_is_the_callers():
    with pytest.raises(ContextWindowOverflowException):
        await summary_of(folding(), Summarizer(*[ContextWindowOverflowException("full")] * 3), None)


async def test_errors_of_the_summarizer_are_the_callers():
    with pytest.raises(RuntimeError, match="broken"):
        await summary_of(folding(), Summarizer(RuntimeError("broken")), None)


def test_the_prompt_stays_within_the_room():
    assert len(prompt_of(folding(500_000), 5_000)) < 5_300


@pytest.mark.parametrize("window", [0, 1, 100, 1_000])
def test_there_is_some_room_in_any_window(window):
    assert room_of(window) >= 600


def test_a_request_is_one_text_and_no_tools():
    request = request_of("p", "s")
    assert list(request.messages) == [{"role": "user", "content": [{"text": "p"}]}]
    assert request.system == ({"text": "s"},)
    assert request.tool_specs == ()


def test_texts_of_an_answer_are_joined_and_tool_uses_left_out():
    content = [{"text": "a"}, {"toolUse": {"toolUseId": "1", "name": "t", "input": {}}}, {"text": "b"}]
    assert answer_of(ModelOutcome({"role": "assistant", "content": content}, "tool_use")) == "a\nb"


def test_a_cancelled_answer_is_told_apart():
    with pytest.raises(SummaryCancelledError):
        answer_of(outcome("half", "cancelled"))


@pytest.mark.parametrize("refused", [outcome("no", "guardrail_intervened"), outcome("DENIED: not that")])
def test_a_refusal_is_no_summary(refused):
    with pytest.raises(SummaryError, match="refused"):
        answer_of(refused)


@pytest.mark.parametrize("stop", ["interrupt", "checkpoint", "limit_turns", "limit_total_tokens"])
def test_what_was_said_before_it_was_stopped_is_no_summary(stop):
    with pytest.raises(SummaryError, match=stop):
        checked_answer(stop, "First I shall")


def test_a_summary_that_was_cut_says_so():
    assert answer_of(outcome("The user wants", "max_tokens")).startswith("The user wants\n[The summary ends here")
    assert answer_of(outcome("", "max_tokens")) == ""
