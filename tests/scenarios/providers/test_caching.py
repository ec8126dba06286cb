"""Cache points: few, where the provider takes them, and of use to the next request (scenario A24)."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import pytest
from stream_events import BEGIN, END, end, said, stop, thinking, thought, words

POINT = {"cachePoint": {"type": "default"}}
ANSWERS = {
    "bedrock": [
        BEGIN, said(0, "an answer"), end(0), thought(1, text="hm"), thought(1, signature="S"), end(1), stop("end_turn"),
    ],
    "litellm": [words("an answer"), thinking(thinking="hm"), thinking(signature="S"), *END],
}  # fmt: skip


def answers(provider, count):
    return [provider.stream(ANSWERS[type(provider).__name__.lower()])] * count


def few_and_well_placed_for_bedrock(body):
    lists = [body["system"], body["toolConfig"]["tools"], *[m["content"] for m in body["messages"]]]
    places = [(blocks, i) for blocks in lists for i, block in enumerate(blocks) if "cachePoint" in block]
    assert len(places) <= 4
    for blocks, i in places:
        assert i > 0
        assert "reasoningContent" not in blocks[i - 1]

    assert body["messages"][-1]["content"][1:2] == [POINT]
    assert len([block for block in body["messages"][-1]["content"] if "cachePoint" in block]) == 1


def marked(value):
    """Everything in a request that carries a mark."""
    if isinstance(value, list):
        return [found for each in value for found in marked(each)]

    if not isinstance(value, dict):
        return []

    return [value] * ("cache_control" in value) + [found for each in value.values() for found in marked(each)]


def few_and_well_placed_for_litellm(body):
    found = marked(body)
    assert 2 <= len(found) <= 4
    assert {each["type"] for each in found} <= {"text", "function"}
    assert marked(body["messages"][0]), "the system prompt's point"
    assert [p.get("cache_control") for p in body["messages"][-1]["content"]] == [{"type": "ephemeral"}, None]
    assert "cachePoint" not in json.dumps(body)


PLACED = {
    "bedrock": ({"cache_tools": "default"}, few_and_well_placed_for_bedrock),
    "litellm": ({}, few_and_well_placed_for_litellm),
}


@pytest.mark.parametrize(
    ("provider", "settings", "check"), [(k, *v) for k, v in PLACED.items()], ids=PLACED, indirect=["provider"]
)
@pytest.mark.parametrize("auto", [{"strategy": "auto"}, None], ids=["auto", "manual"])
def test_cache_points_are_few_and_where_the_provider_takes_them(provider, settings, check, calculators, auto):
    """Scenario A24."""
    agent, server = provider.make(
        answers(provider, 6),
        {"cache_config": auto, **settings},
        tools=calculators,
        system_prompt=[{"text": "sys"}, POINT],
    )
    prompts = [[{"text": f"long question {n}"}, POINT, {"text": f"it is {n} o'clock"}] for n in range(6)]
    given = copy.deepcopy(prompts)

    for prompt in prompts:
        agent(prompt)

    assert prompts == given
    assert all(POINT in message["content"] for message in agent.messages[::2])
    assert len(server.requests) == 6
    for received in server.requests:
        check(received.body)


def test_what_was_written_to_the_cache_is_read_by_the_next_request(bedrock):
    """The kind behind A24: a tail that only moves is written with each request and never read."""
    agent, server = bedrock.make(answers(bedrock, 4), {"cache_config": {"strategy": "auto"}})
    for number in range(4):
        agent(f"question {number}")

    def cached(body):
        blocks = [block for message in body["messages"] for block in message["content"]]
        places = [i for i, block in enumerate(blocks) if "cachePoint" in block]
        return [[block for block in blocks[:i] if "cachePoint" not in block] for i in places]

    requests = [cached(received.body) for received in server.requests]
    assert [len(prefixes) for prefixes in requests] == [1, 2, 2, 2]
    for before, after in pairwise(requests):
        assert before[-1] in after


def test_what_was_cached_is_the_beginning_of_the_next_request(litellm):
    """The kind behind A24: a point is worth something only if what stands before it stays as it is."""
    agent, server = litellm.make(answers(litellm, 4), {"cache_config": {"strategy": "auto"}})
    for number in range(4):
        agent(f"question {number}")

    def prefix(body):
        said = [
            (m["role"], m["content"] if isinstance(m["content"], str) else m["content"][0]["text"])
            for m in body["messages"]
        ]
        return said[: max(i for i, message in enumerate(body["messages"]) if marked(message)) + 1]

    cached = [prefix(received.body) for received in server.requests]
    assert len(cached) == 4
    for before, after in pairwise(cached):
        assert after[: len(before)] == before
        assert len(after) > len(before)
