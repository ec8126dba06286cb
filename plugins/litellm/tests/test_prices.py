from __future__ import annotations

import pytest

from ropewalk.errors import UnknownModelError
from ropewalk_litellm import LiteLLMModel, litellm_cost, price_of
from ropewalk_litellm.library import litellm


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """A table of our own, so that prices may change."""
    entries = {
        "gpt-x": {
            "litellm_provider": "openai",
            "max_input_tokens": 1000,
            "input_cost_per_token": 2e-6,
            "output_cost_per_token": 8e-6,
            "cache_read_input_token_cost": 1e-6,
        },
        "groq/gpt-x": {"litellm_provider": "groq", "input_cost_per_token": 1e-7, "output_cost_per_token": 1e-7},
        "gemini-x": {
            "litellm_provider": "vertex_ai-language-models",
            "input_cost_per_token": 5e-6,
            "output_cost_per_token": 5e-6,
        },
        "free-x": {"litellm_provider": "openai", "supports_response_schema": False},
    }
    monkeypatch.setattr(litellm(), "model_cost", entries)


def test_a_usage_has_a_cost():
    usage = {"inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100}

    assert litellm_cost("openai/gpt-x", usage) == pytest.approx(0.0028)
    assert litellm_cost("groq/gpt-x", usage) == pytest.approx(0.00011)


def test_cached_tokens_have_their_own_price_or_that_of_others():
    assert litellm_cost("openai/gpt-x", {"cacheReadInputTokens": 1000, "cacheWriteInputTokens": 1000}) == pytest.approx(
        0.003
    )


def test_prices_can_be_put_into_the_table_of_the_limits():
    assert price_of("openai/gpt-x") == pytest.approx({"input": 2, "output": 8, "cache_read": 1})


@pytest.mark.parametrize("model_id", ["openai/gpt-y", "azure/gpt-x", "openai/free-x", "openai/", ""])
def test_a_price_that_is_not_known_is_not_made_up(model_id):
    with pytest.raises(UnknownModelError, match="no price"):
        litellm_cost(model_id, {"inputTokens": 1})


def test_a_provider_with_a_longer_name_in_the_table_is_found():
    assert litellm_cost("vertex_ai/gemini-x", {"inputTokens": 1_000_000}) == pytest.approx(5)


def test_the_window_is_the_tables_unless_set():
    assert LiteLLMModel("openai/gpt-x").context_window == 1000
    assert LiteLLMModel("openai/gpt-x", context_window_limit=77).context_window == 77
    assert LiteLLMModel("openai/unheard-of").context_window is None


def test_schemas_are_not_asked_of_models_that_do_not_take_them():
    assert LiteLLMModel("openai/free-x").supports_output_schema is False
    assert LiteLLMModel("openai/gpt-x").supports_output_schema is True
    assert LiteLLMModel("openai/unheard-of").supports_output_schema is True
