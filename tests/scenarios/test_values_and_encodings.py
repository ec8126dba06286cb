"""Values and encodings: what no JSON file or UTF-8 stream can hold (scenarios A13 and A14)."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import enum
import json
import uuid
from decimal import Decimal

import pytest
from pydantic import BaseModel

from ropewalk import tool
from ropewalk_testing import turn, use

LONE = "bad \ud83d end"


def storable(messages):
    """The messages after a round trip through strict JSON in UTF-8; fails where they cannot make it."""
    return json.loads(json.dumps(list(messages), ensure_ascii=False, allow_nan=False).encode("utf-8"))


# -- A13 ---------------------------------------------------------------------------------------------------------


@tool
def echo(value: str) -> str:
    """Echoes."""
    return value


@tool
def give_lone() -> str:
    """Gives half an emoji."""
    return LONE


@tool
def give_lone_json() -> dict:
    """Gives half an emoji, in a key and a value."""
    return {"k\ud83d": [LONE]}


@tool
def give_lone_result() -> dict:
    """Gives a whole result with half an emoji."""
    return {"status": "success", "content": [{"text": LONE}, {"json": {"v": LONE}}]}


@tool
def fail_lone() -> str:
    """Fails with half an emoji."""
    raise ValueError(LONE)


@tool
async def stream_lone():
    """Streams half an emoji."""
    yield LONE
    yield LONE


@pytest.mark.parametrize(
    "body", [give_lone, give_lone_json, give_lone_result, fail_lone, stream_lone], ids=lambda t: t.tool_name
)
def test_half_an_emoji_from_a_tool_does_not_lose_the_run(ask, make_agent, body):
    """Scenario A13."""
    agent, model = make_agent([use(body.tool_name, {}), "ok"], tools=[body])

    result = ask(agent, "go")

    assert str(result) == "ok\n"
    assert storable(agent.messages) == list(agent.messages)
    assert storable(model.requests[1].messages)
    assert "bad " in json.dumps(storable(agent.messages))


def test_half_an_emoji_in_a_prompt_does_not_lose_the_run(ask, make_agent):
    """Scenario A13."""
    agent, model = make_agent(["ok", "ok"])

    ask(agent, LONE)
    ask(agent, [{"text": LONE}])

    assert storable(agent.messages) == list(agent.messages)
    assert storable(model.requests[1].messages)
    assert agent.messages[0]["content"][0]["text"] == "bad \ufffd end"


def test_half_an_emoji_in_an_argument_does_not_lose_the_run(ask, make_agent, tool_results):
    """Scenario A13."""
    agent, model = make_agent([use("echo", '{"value": "bad \\ud83d end"}'), "ok"], tools=[echo])

    ask(agent, "go")

    assert storable(agent.messages) == list(agent.messages)
    assert storable(model.requests[1].messages)
    assert tool_results(agent.messages)[0]["content"] == [{"text": "bad \ufffd end"}]


def test_half_an_emoji_from_the_model_does_not_lose_the_run(ask, make_agent):
    """Scenario A13."""
    agent, _ = make_agent([turn(LONE)])

    result = ask(agent, "go")

    assert str(result) == "bad \ufffd end\n"
    assert storable(agent.messages) == list(agent.messages)


def test_half_an_emoji_in_a_models_error_leaves_the_agent_usable(ask, make_agent):
    """Scenario A13."""
    agent, _ = make_agent([RuntimeError(LONE), "ok"])

    with pytest.raises(RuntimeError):
        ask(agent, "go")

    assert str(ask(agent, "again")) == "ok\n"


def test_an_emoji_split_across_two_deltas_is_joined(ask, make_agent):
    """Scenario A13."""
    events = [
        {"messageStart": {"role": "assistant"}},
        *[
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": piece}}}
            for piece in ("smile ", "\ud83d", "\ude42", " again \ud83d", "\ude42")
        ],
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    agent, _ = make_agent([turn(raw=events)])

    result = ask(agent, "go")

    assert str(result) == "smile \U0001f642 again \U0001f642\n"
    assert storable(agent.messages) == list(agent.messages)


def test_an_emoji_split_across_two_argument_deltas_is_joined(ask, make_agent, tool_results):
    """Scenario A13."""
    pieces = ('{"value": "\ud83d', "\ude42 \\ud83d", '\\ude42"}')
    events = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "T1", "name": "echo"}}}},
        *[{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": p}}}} for p in pieces],
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]
    agent, _ = make_agent([turn(raw=events), "ok"], tools=[echo])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": "\U0001f642 \U0001f642"}]


# -- A14 ---------------------------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Pair:
    left: int
    right: Decimal


class Item(BaseModel):
    day: dt.date
    price: Decimal


LOOP: list = [1]
LOOP.append(LOOP)

VALUES = {
    "not a number": ({"v": float("nan"), "w": float("inf"), "x": -float("inf")}, {"v": None, "w": None, "x": None}),
    "decimal, date, uuid": (
        {"price": Decimal("1.10"), "day": dt.date(2024, 2, 29), "id": uuid.UUID(int=1)},
        {"price": "1.10", "day": "2024-02-29", "id": "00000000-0000-0000-0000-000000000001"},
    ),
    "bytes": ({"blob": b"\x00\xff"}, {"blob": base64.b64encode(b"\x00\xff").decode()}),
    "a big number": ({"n": 2**70}, {"n": 2**70}),
    "a set": ({"s": {3, 1, 2}}, {"s": [1, 2, 3]}),
    "an enum": ({"c": Color.RED}, {"c": "red"}),
    "a dataclass": (Pair(1, Decimal("2.50")), {"left": 1, "right": "2.50"}),
    "a model": (Item(day=dt.date(2024, 2, 29), price=Decimal("1.10")), {"day": "2024-02-29", "price": "1.10"}),
    "a model inside": (
        [Item(day=dt.date(2024, 2, 29), price=Decimal("1.10"))],
        [{"day": "2024-02-29", "price": "1.10"}],
    ),
    "number keys": ({1: "a", 2: {3: "b"}}, {"1": "a", "2": {"3": "b"}}),
    "a cycle": (LOOP, [1, "<cycle>"]),
    "a tuple": ((1, 2), [1, 2]),
}


def value_of(result):
    """The value in the one content block, whether it stands there as JSON or as JSON text."""
    (block,) = result["content"]
    return block["json"] if "json" in block else json.loads(block["text"], parse_constant=pytest.fail)


@pytest.mark.parametrize(("value", "expected"), VALUES.values(), ids=VALUES)
def test_any_value_a_tool_returns_becomes_strict_json(ask, make_agent, tool_results, value, expected):
    """Scenario A14."""

    @tool
    def give():
        """Gives a value."""
        return value

    agent, model = make_agent([use("give", {}), "ok"], tools=[give])

    assert str(ask(agent, "go")) == "ok\n"

    (result,) = tool_results(agent.messages)
    assert result["status"] == "success"
    assert value_of(result) == expected
    assert storable(model.requests[1].messages)


@pytest.mark.parametrize(("value", "expected"), VALUES.values(), ids=VALUES)
def test_any_value_in_a_json_block_becomes_strict_json(ask, make_agent, tool_results, value, expected):
    """Scenario A14."""

    @tool
    def give():
        """Gives a result with a value."""
        return {"status": "success", "content": [{"json": value}]}

    agent, model = make_agent([use("give", {}), "ok"], tools=[give])

    assert str(ask(agent, "go")) == "ok\n"

    (result,) = tool_results(agent.messages)
    assert result["content"] == [{"json": expected}]
    assert storable(model.requests[1].messages)


@pytest.mark.parametrize(
    "value", [object(), lambda: None, type, 1j, range(3), iter([1])], ids=lambda value: type(value).__name__
)
def test_an_object_of_no_kind_never_crashes_the_run(ask, make_agent, tool_results, value):
    """Scenario A14."""

    @tool
    def give():
        """Gives an object."""
        return {"value": value}

    agent, _ = make_agent([use("give", {}), "ok"], tools=[give])

    assert str(ask(agent, "go")) == "ok\n"
    assert storable(agent.messages)
    assert len(tool_results(agent.messages)) == 1
