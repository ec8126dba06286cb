from __future__ import annotations

import pytest
from pydantic import ValidationError

from ropewalk_bedrock import DEFAULT_MODEL, BedrockModel, CacheConfig


def test_the_default_model_needs_no_setting():
    assert BedrockModel().get_config() == {"model_id": DEFAULT_MODEL}
    assert DEFAULT_MODEL == "us.anthropic.claude-sonnet-4-20250514-v1:0"


def test_settings_can_be_read_and_changed():
    model = BedrockModel("amazon.nova-lite-v1:0", temperature=0.5)

    model.update_config(max_tokens=100, temperature=None)

    assert model.get_config() == {"model_id": "amazon.nova-lite-v1:0", "max_tokens": 100}
    assert model.model_id == "amazon.nova-lite-v1:0"


def test_what_is_read_can_be_given_again():
    model = BedrockModel(cache_config=CacheConfig(ttl="1h"), cache_prompt="default", stop_sequences=["END"])

    assert BedrockModel(**model.get_config()).get_config() == model.get_config()


def test_a_read_config_is_a_copy():
    model = BedrockModel(stop_sequences=["END"])
    model.get_config()["stop_sequences"].append("MORE")

    assert model.get_config()["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    "setting",
    [
        {"max_token": 5},
        {"max_tokens": 0},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 1.5},
        {"cache_config": {"strategy": "always"}},
        {"cache_tools": "yes"},
        {"service_tier": "gold"},
        {"guardrail_trace": "on"},
        {"context_window_limit": 0},
        {"include_tool_result_status": "maybe"},
        {"model_id": ""},
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_by_name_and_changes_nothing(setting):
    (name,) = setting
    model = BedrockModel(max_tokens=7)

    with pytest.raises(ValidationError, match=name):
        model.update_config(**setting)

    with pytest.raises(ValidationError, match=name):
        BedrockModel(**setting)

    assert model.get_config() == {"model_id": DEFAULT_MODEL, "max_tokens": 7}


@pytest.mark.parametrize(
    ("model_id", "window"),
    [
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("anthropic.claude-v2", 100_000),
        ("anthropic.claude-v2:1", 200_000),
        ("eu.amazon.nova-pro-v1:0", 300_000),
        ("amazon.nova-micro-v1:0", 128_000),
        ("arn:aws:bedrock:us-east-1::foundation-model/meta.llama3-3-70b-instruct-v1:0", 128_000),
        ("meta.llama3-8b-instruct-v1:0", 8_192),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", None),
        ("gpt-of-somebody", None),
    ],
)
def test_the_window_is_known_by_the_id(model_id, window):
    assert BedrockModel(model_id).context_window == window


def test_a_given_window_wins():
    assert BedrockModel("unknown", context_window_limit=5000).context_window == 5000
