"""Cache points (scenario A24): which are sent, and which are not."""

from __future__ import annotations

import copy

import pytest

from ropewalk_bedrock.request import converse_arguments
from ropewalk_bedrock.settings import Settings

POINT = {"cachePoint": {"type": "default"}}
NOVA, TITAN = "amazon.nova-pro-v1:0", "amazon.titan-text-express-v1"


def points(blocks):
    return [i for i, block in enumerate(blocks) if "cachePoint" in block]


def all_points(arguments):
    lists = [arguments.get("system", []), arguments.get("toolConfig", {}).get("tools", [])]
    lists += [message["content"] for message in arguments["messages"]]
    return sum(len(points(blocks)) for blocks in lists)


def user(*blocks):
    return ("user", *[{"text": block} if isinstance(block, str) else block for block in blocks])


def model(*blocks):
    return ("assistant", *[{"text": block} if isinstance(block, str) else block for block in blocks])


THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}}


@pytest.fixture
def long_conversation(request_of, spec):
    """Six user turns with a point each, answers that end in thinking, tools and a system point."""
    turns = []
    for number in range(6):
        turns += [user(f"q{number}", POINT, "now it is noon"), model("a", THOUGHT)]

    return request_of(*turns[:-1], system=({"text": "sys"}, POINT), tool_specs=(spec(),))


@pytest.mark.parametrize("auto", [{"strategy": "auto"}, None], ids=["auto", "manual"])
def test_at_most_four_points_are_sent_and_the_last_turn_keeps_its_own(long_conversation, auto):
    before = copy.deepcopy(long_conversation.messages)

    arguments = converse_arguments(long_conversation, Settings(cache_config=auto, cache_tools="default"))

    assert all_points(arguments) == 4
    messages = arguments["messages"]
    assert [points(m["content"]) for m in messages[::2]] == [[], [], [], [], [1], [1]]
    assert points(arguments["system"]) == [1]
    assert points(arguments["toolConfig"]["tools"]) == [1]
    assert long_conversation.messages == before


@pytest.mark.parametrize("auto", [{"strategy": "auto"}, None], ids=["auto", "manual"])
def test_no_point_is_first_in_a_message_or_after_thinking_or_doubled(request_of, auto):
    request = request_of(
        user(POINT, "q"),
        model("a", THOUGHT, POINT),
        user("q", POINT, POINT),
        model(THOUGHT, POINT, "a"),
        user(POINT, "x"),
    )

    messages = converse_arguments(request, Settings(cache_config=auto))["messages"]

    for message in messages:
        for place in points(message["content"]):
            assert place > 0
            assert not {"reasoningContent", "cachePoint"} & set(message["content"][place - 1])

    assert [points(message["content"]) for message in messages[:4]] == [[], [], [1], []]


def test_auto_sets_points_at_the_ends_of_the_last_two_user_turns(request_of):
    request = request_of(user("q1"), model("a1"), user("q2"), model("a2"), user("q3"))

    messages = converse_arguments(request, Settings(cache_config={"strategy": "auto", "ttl": "1h"}))["messages"]

    assert [points(m["content"]) for m in messages] == [[], [], [1], [], [1]]
    assert messages[-1]["content"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}


def test_auto_leaves_a_turn_with_a_point_of_the_callers_alone(request_of):
    request = request_of(user("long", POINT, "volatile"))

    messages = converse_arguments(request, Settings(cache_config={"strategy": "auto"}))["messages"]

    assert messages[0]["content"] == [{"text": "long"}, POINT, {"text": "volatile"}]


@pytest.mark.parametrize(
    ("model_id", "strategy", "expected"),
    [
        (NOVA, "auto", 1),
        (TITAN, "auto", 0),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "auto", 0),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "anthropic", 1),
    ],
)
def test_auto_is_for_models_that_are_known_to_cache(request_of, model_id, strategy, expected):
    settings = Settings(model_id=model_id, cache_config={"strategy": strategy})

    assert all_points(converse_arguments(request_of(), settings)) == expected


def test_auto_finds_room_beside_points_of_old_turns(request_of):
    turns = [turn for number in range(5) for turn in (user(f"q{number}", POINT), model("a"))]

    arguments = converse_arguments(request_of(*turns, user("last")), Settings(cache_config={"strategy": "auto"}))

    assert [points(m["content"]) for m in arguments["messages"][::2]] == [[], [], [1], [1], [1], [1]]


def test_the_same_dict_in_many_places_counts_as_many_points(request_of):
    arguments = converse_arguments(request_of(user(*["t", POINT] * 6)), Settings())

    assert points(arguments["messages"][0]["content"]) == [3, 5, 7, 9]


def test_a_point_of_the_settings_follows_the_system_prompt_and_the_tools(request_of, spec):
    request = request_of(system=({"text": "sys"},), tool_specs=(spec(),))

    arguments = converse_arguments(request, Settings(cache_prompt="default", cache_tools={"ttl": "5m"}))

    assert arguments["system"] == [{"text": "sys"}, POINT]
    assert arguments["toolConfig"]["tools"][-1] == {"cachePoint": {"type": "default", "ttl": "5m"}}


def test_without_system_prompt_and_tools_there_is_nothing_to_cache(request_of):
    arguments = converse_arguments(request_of(), Settings(cache_prompt="default", cache_tools="default"))

    assert "system" not in arguments
    assert "toolConfig" not in arguments


def test_a_point_that_the_system_prompt_has_is_not_doubled(request_of):
    arguments = converse_arguments(request_of(system=({"text": "s"}, POINT)), Settings(cache_prompt="default"))

    assert arguments["system"] == [{"text": "s"}, POINT]


def test_a_message_of_nothing_but_a_point_still_says_something(request_of):
    arguments = converse_arguments(request_of(user("q"), model(POINT), user("x")), Settings())

    assert arguments["messages"][1]["content"] == [{"text": "[blank text]"}]
