from __future__ import annotations

from types import SimpleNamespace

from ropewalk_litellm.usage import usage_of


def counted(**fields):
    return usage_of(SimpleNamespace(**fields))


def test_tokens_are_counted():
    usage = counted(prompt_tokens=10, completion_tokens=5, total_tokens=15)

    assert usage == {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}


def test_cached_tokens_are_counted_once():
    details = SimpleNamespace(cached_tokens=60, cache_creation_tokens=None)
    usage = counted(
        prompt_tokens=100,
        completion_tokens=5,
        total_tokens=105,
        prompt_tokens_details=details,
        cache_creation_input_tokens=30,
    )

    assert usage == {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 105,
        "cacheReadInputTokens": 60,
        "cacheWriteInputTokens": 30,
    }


def test_counts_that_make_no_sense_are_none():
    usage = counted(prompt_tokens=None, completion_tokens="5", total_tokens=-1, prompt_tokens_details=None)

    assert usage == {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


def test_more_cached_than_there_were_leaves_nothing_below_zero():
    details = SimpleNamespace(cached_tokens=60)

    assert counted(prompt_tokens=10, completion_tokens=1, prompt_tokens_details=details)["inputTokens"] == 0
