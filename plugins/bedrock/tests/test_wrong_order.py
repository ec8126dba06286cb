"""Streams in every wrong order, and frames with wrong bytes: an answer or one typed error, never anything else."""

from __future__ import annotations

import random

import pytest

from ropewalk.errors import ModelError
from ropewalk.kits.calls.outcomes import ModelOutcome
from ropewalk.kits.messages.assembly import Assembly
from ropewalk_testing import turn
from ropewalk_testing.servers import CUT, event_frame

START = ("messageStart", {"role": "assistant"})
TOOL = {"toolUse": {"toolUseId": "T1", "name": "add"}}
EVENTS = [
    START,
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "S"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": "AQ=="}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "half "}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"citation": {"title": "T"}}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": TOOL}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a": '}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "1}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}),
]
ODD = [
    ("contentBlockDelta", {}),
    ("contentBlockDelta", None),
    ("contentBlockDelta", []),
    ("contentBlockDelta", {"contentBlockIndex": "x", "delta": {"text": 5}}),
    ("contentBlockDelta", {"contentBlockIndex": -1, "delta": {"text": {"a": 1}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"reasoningContent": None}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": "no base64!"}}}),
    ("contentBlockStart", {"contentBlockIndex": 9, "start": None}),
    ("contentBlockStart", {"start": {"toolUse": {}}}),
    ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": None}}),
    ("contentBlockStop", None),
    ("messageStart", None),
    ("messageStop", {}),
    ("messageStop", {"stopReason": None}),
    ("messageStop", "text"),
    ("metadata", {"usage": {"inputTokens": "many"}}),
    ("metadata", {"usage": None, "trace": {"guardrail": None}}),
    ("metadata", {"trace": {"guardrail": {"inputAssessment": {"g": None}, "outputAssessments": {"g": [None]}}}}),
    ("novelty", {"a": 1}),
]


async def settled(model, request):
    """Reads a stream to its answer or its error; anything else than a `ModelError` fails the test."""
    assembly = Assembly()
    try:
        async for event in model.stream(request):
            assembly.feed(event)

        return assembly.finish(lambda use_id, _: use_id or "made")
    except ModelError as error:
        return error


@pytest.mark.parametrize("seed", range(60))
async def test_a_shuffled_stream_is_an_answer_or_one_typed_error(bedrock, request_of, seed):
    chance = random.Random(seed)
    events = [event for event in EVENTS if chance.random() > 0.1] + chance.choices(EVENTS, k=3)
    chance.shuffle(events)
    model, _ = bedrock([turn(raw=events)])

    assert isinstance(await settled(model, request_of()), ModelOutcome | ModelError)


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("place", [0, 1, 6, 13])
async def test_an_event_of_a_wrong_shape_is_passed_over_or_one_typed_error(bedrock, request_of, odd, place):
    model, _ = bedrock([turn(raw=[*EVENTS[:place], odd, *EVENTS[place:]])])

    assert isinstance(await settled(model, request_of()), ModelOutcome | ModelError)


@pytest.mark.parametrize("seed", range(60))
async def test_wrong_bytes_are_one_typed_error(bedrock, request_of, seed):
    chance = random.Random(seed)
    data = bytearray(b"".join(event_frame(*event) for event in EVENTS))
    for _ in range(3):
        data[chance.randrange(len(data))] = chance.randrange(256)

    model, _ = bedrock([turn(raw=[bytes(data), CUT])])

    assert isinstance(await settled(model, request_of()), ModelError)


WHOLE = [
    {},
    {"output": []},
    {"output": {"message": {"content": [None]}}},
    {"output": {"message": {"content": "text"}}},
    {"output": {"message": {"content": [{"text": 5}]}}, "usage": []},
    {"output": {"message": {"content": [{"toolUse": {"input": "x"}}]}}, "stopReason": 7},
    "text",
    [],
    None,
]


@pytest.mark.parametrize("body", WHOLE, ids=str)
async def test_a_whole_answer_of_a_wrong_shape_is_an_answer_or_one_typed_error(bedrock, request_of, body):
    model, _ = bedrock([turn(raw=[body])], streaming=False)

    assert isinstance(await settled(model, request_of()), ModelOutcome | ModelError)
