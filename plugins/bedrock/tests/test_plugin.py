from __future__ import annotations

import pytest
from pydantic import ValidationError

from ropewalk import Agent, UnknownModelError
from ropewalk.model import Model
from ropewalk_bedrock import DEFAULT_MODEL, BedrockModel, BedrockPlugin
from ropewalk_testing import PluginContract


class TestContract(PluginContract):
    plugin = BedrockPlugin


ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0"


@pytest.mark.parametrize(
    ("spec", "model_id"),
    [
        (None, DEFAULT_MODEL),
        ("bedrock", DEFAULT_MODEL),
        ("bedrock:", DEFAULT_MODEL),
        ("bedrock:amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("anthropic.claude-v2", "anthropic.claude-v2"),
        (f"bedrock:{ARN}", ARN),
        (ARN, ARN),
    ],
)
def test_a_string_becomes_a_model(spec, model_id):
    model = BedrockPlugin().provide_model(spec)

    assert isinstance(model, BedrockModel)
    assert isinstance(model, Model)
    assert model.model_id == model_id


@pytest.mark.parametrize(
    "spec", ["", "local:qwen2.5-coder-1.5b", "testing:", "litellm:openai/gpt-4o", "BEDROCK:x", "two words"]
)
def test_other_strings_are_left_to_others(spec):
    assert BedrockPlugin().provide_model(spec) is None


@pytest.mark.parametrize("parameters", [{}, {"model": "bedrock"}, {"model": DEFAULT_MODEL}])
def test_an_agent_without_a_model_has_the_default_one(monkeypatch, parameters):
    monkeypatch.delenv("ROPEWALK_MODEL", raising=False)

    agent = Agent(callback_handler=None, **parameters)

    assert isinstance(agent.model, BedrockModel)
    assert agent.model.model_id == DEFAULT_MODEL


def test_a_string_that_is_no_id_is_refused():
    with pytest.raises(UnknownModelError, match="two words"):
        Agent(model="two words", callback_handler=None).model  # noqa: B018 - resolved at the first use


def test_options_are_settings_of_the_models():
    plugin = BedrockPlugin(BedrockPlugin.Config(temperature=0.2, model_id="amazon.nova-lite-v1:0"))

    assert plugin.provide_model("bedrock").get_config() == {"model_id": "amazon.nova-lite-v1:0", "temperature": 0.2}
    assert plugin.provide_model("bedrock:x").get_config() == {"model_id": "x", "temperature": 0.2}


async def test_options_say_where_to_call(bedrock, request_of, drain):
    _, server = bedrock(["hi"])
    plugin = BedrockPlugin(BedrockPlugin.Config(endpoint_url=server.url, region_name="eu-central-1"))

    await drain(plugin.provide_model("bedrock"), request_of())

    assert "/eu-central-1/" in server.requests[0].headers["authorization"]


def test_an_unknown_option_is_refused():
    with pytest.raises(ValidationError, match="temprature"):
        BedrockPlugin.Config(temprature=0.5)


def test_a_key_is_not_shown():
    assert "secret-key" not in repr(BedrockPlugin.Config(api_key="secret-key"))
