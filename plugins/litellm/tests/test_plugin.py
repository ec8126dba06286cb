from __future__ import annotations

import pytest
from pydantic import ValidationError

from ropewalk import Agent
from ropewalk.errors import UnknownModelError
from ropewalk.model import Model
from ropewalk_litellm import LiteLLMModel, LiteLLMPlugin
from ropewalk_testing import PluginContract
from ropewalk_testing.servers import OpenAIServer


class TestContract(PluginContract):
    plugin = LiteLLMPlugin


@pytest.mark.parametrize(
    ("spec", "model_id"),
    [
        ("litellm:openai/gpt-4o", "openai/gpt-4o"),
        ("litellm:bedrock/us.anthropic.claude-x-v1:0", "bedrock/us.anthropic.claude-x-v1:0"),
        ("litellm:gpt-4o", "gpt-4o"),
    ],
)
def test_a_string_becomes_a_model(spec, model_id):
    model = LiteLLMPlugin().provide_model(spec)

    assert isinstance(model, LiteLLMModel)
    assert isinstance(model, Model)
    assert model.model_id == model_id


@pytest.mark.parametrize("spec", [None, "", "litellms:x", "bedrock:x", "LITELLM:x"])
def test_other_strings_are_left_to_others(spec):
    assert LiteLLMPlugin().provide_model(spec) is None


@pytest.mark.parametrize("spec", ["litellm", "litellm:"])
def test_a_string_without_a_model_says_what_is_missing(spec):
    with pytest.raises(UnknownModelError, match="litellm:openai/gpt-4o"):
        LiteLLMPlugin().provide_model(spec)


def test_options_are_settings_of_the_models():
    config = LiteLLMPlugin.Config(
        params={"seed": 1}, client_args={"api_key": "k"}, stream=False, context_window_limit=9
    )

    settings = LiteLLMPlugin(config).provide_model("litellm:openai/m").get_config()

    assert settings == {
        "model_id": "openai/m",
        "params": {"seed": 1},
        "client_args": {"api_key": "k"},
        "stream": False,
        "context_window_limit": 9,
        "cache_config": None,
    }


def test_an_unknown_option_is_refused():
    with pytest.raises(ValidationError, match="temprature"):
        LiteLLMPlugin.Config(temprature=0.5)


def test_an_agent_finds_its_model_by_a_string():
    with OpenAIServer(["hello there"]) as server:
        options = {"client_args": {"api_base": server.api_base, "api_key": "k"}}
        agent = Agent(model="litellm:openai/m", plugins=[("litellm", options)])

        assert str(agent("hi")) == "hello there\n"
        assert server.requests[0].model == "m"
