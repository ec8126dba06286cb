"""What models cost."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ropewalk_limits.prices import Price, check_price, cost_of, model_id_of

USAGE = {"inputTokens": 1_000_000, "outputTokens": 100_000, "totalTokens": 1_100_000}


def test_a_price_is_per_million_tokens():
    assert Price(input=3, output=15).of(USAGE) == pytest.approx(4.5)


def test_tokens_of_the_cache_have_their_own_price_or_that_of_the_input():
    usage = {"inputTokens": 0, "cacheReadInputTokens": 1_000_000, "cacheWriteInputTokens": 2_000_000}
    assert Price(input=3, output=15, cache_read=0.3, cache_write=3.75).of(usage) == pytest.approx(7.8)
    assert Price(input=3, output=15).of(usage) == pytest.approx(9)


def test_the_model_counts_and_all_others_have_the_star():
    table = {"big": Price(input=10, output=0), "*": Price(input=1, output=0)}
    assert [cost_of(table, name, USAGE) for name in ("big", "small")] == [10, 1]


def test_a_model_without_a_price_costs_nothing_and_its_cost_cannot_be_limited():
    table = {"big": Price(input=10, output=0)}
    assert cost_of(table, "small", USAGE) == 0
    check_price(table, "big")
    with pytest.raises(ValueError, match="have no model 'small': add it"):
        check_price(table, "small")


def test_a_function_is_asked_with_model_and_usage():
    assert cost_of(lambda model, usage: len(model) * usage["outputTokens"], "abc", USAGE) == 300_000


@pytest.mark.parametrize("answer", [None, "1", True, -1, float("nan")], ids=repr)
def test_a_function_that_answers_no_price_is_an_error(answer):
    with pytest.raises(ValueError, match="the prices of plugin 'limits' say"):
        cost_of(lambda model, usage: answer, "abc", USAGE)


@pytest.mark.parametrize(
    "values", [{"input": 1}, {"input": -1, "output": 1}, {"input": 1, "output": 1, "cash": 1}], ids=str
)
def test_a_price_that_is_none_is_refused(values):
    with pytest.raises(ValidationError):
        Price(**values)


def test_a_models_id_is_what_it_says_or_its_class():
    class Named:
        model_id = "big"

    class Configured:
        config = {"model_id": "small"}  # noqa: RUF012 - as models have it

    class Plain:
        pass

    assert [model_id_of(each) for each in (Named(), Configured(), Plain())] == ["big", "small", "Plain"]
