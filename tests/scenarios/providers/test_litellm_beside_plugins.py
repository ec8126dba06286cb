"""LiteLLM's prices and schemas serve the plugins beside it."""

from __future__ import annotations

from pydantic import BaseModel

from ropewalk_testing import turn, use


class Person(BaseModel):
    name: str
    age: int


def test_the_cost_is_limited_by_litellms_prices(ask, litellm, calculators, monkeypatch):
    from ropewalk_litellm import library, litellm_cost

    price = {"litellm_provider": "openai", "input_cost_per_token": 0.001, "output_cost_per_token": 0.01}
    module = library.litellm()
    monkeypatch.setattr(module, "model_cost", {**module.model_cost, "scripted": price})
    asking = turn(use("add", {"a": 1, "b": 2}), usage=(10, 5))
    prices = [("limits", {"prices": litellm_cost})]
    agent, server = litellm.make([asking] * 3, tools=calculators, plugins=prices)

    result = ask(agent, "go", limits={"cost": 0.1})

    assert result.stop_reason == "limit_cost"
    assert server.calls == 2  # 0.06 each


def test_structured_output_is_held_to_its_schema(ask, litellm):
    agent, server = litellm.make(["Ann is seven.", '{"name": "Ann", "age": 7}'])

    result = ask(agent, "Who?", structured_output_model=Person)

    assert result.structured_output == Person(name="Ann", age=7)
    assert server.requests[1].body["response_format"]["json_schema"]["schema"]["required"] == ["name", "age"]
