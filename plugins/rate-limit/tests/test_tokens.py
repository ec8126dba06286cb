"""What a request is thought to take."""

from __future__ import annotations

from ropewalk import JSONState, ModelRequest
from ropewalk_rate_limit.tokens import estimate, remember


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def answer(text):
    return {"role": "assistant", "content": [{"text": text}]}


USAGE = {"inputTokens": 900, "outputTokens": 100, "totalTokens": 1_000}


def test_a_first_request_is_counted_by_its_size():
    tools = ({"name": "n" * 40, "description": "d" * 40, "inputSchema": {"json": {"type": "object"}}},)
    request = ModelRequest([user("x" * 400)], ({"text": "y" * 400}, {"cachePoint": {"type": "default"}}), tools)
    read, written = estimate(request, JSONState())
    assert 200 + 20 <= read <= 200 + 60
    assert written == 0


def test_later_only_what_is_new_is_counted():
    cell = JSONState()
    remember(ModelRequest([user("x" * 4_000)]), USAGE, cell)
    messages = [user("x" * 4_000), answer("long" * 1_000), user("y" * 40)]
    assert estimate(ModelRequest(messages), cell) == (1_010, 100)


def test_a_repeated_request_is_as_large_as_before():
    cell = JSONState()
    request = ModelRequest([user("x")])
    remember(request, USAGE, cell)
    assert estimate(request, cell) == (1_000, 100)


def test_a_history_that_was_cut_is_counted_anew():
    cell = JSONState()
    remember(ModelRequest([user("a"), answer("b"), user("c")]), USAGE, cell)
    assert estimate(ModelRequest([user("x" * 40)]), cell) == (10, 100)


def test_a_call_beside_the_conversation_is_counted_by_its_size_and_not_remembered():
    cell = JSONState()
    beside = ModelRequest([user("x" * 4_000)], purpose="summary")
    remember(ModelRequest([user("a")]), USAGE, cell)
    assert estimate(beside, cell) == (1_000, 100)

    remember(beside, {"inputTokens": 50_000, "outputTokens": 500, "totalTokens": 50_500}, cell)
    assert estimate(ModelRequest([user("a"), answer("b"), user("c" * 40)]), cell) == (1_010, 100)
