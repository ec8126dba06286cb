from __future__ import annotations

import pytest

from ropewalk.model import ModelRequest


@pytest.fixture
def ask():
    def make(*texts, **options):
        messages = [
            {"role": role, "content": [{"text": text}]}
            for role, text in zip(["user", "assistant"] * 9, texts or ("hi",), strict=False)
        ]
        return ModelRequest(messages=messages, **options)

    return make


@pytest.fixture
def play():
    async def play(model, request):
        return [event async for event in model.stream(request)]

    return play
