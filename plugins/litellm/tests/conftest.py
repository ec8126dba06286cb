"""Models against a server on loopback."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from ropewalk.model import ModelRequest
from ropewalk_litellm import LiteLLMModel
from ropewalk_testing.servers import OpenAIServer


@pytest.fixture
def served():
    """Starts servers: `served(turns, **settings)` gives a model and the server that it asks."""
    with ExitStack() as stack:

        def start(turns, model_id="openai/scripted", client_args=None, **settings):
            server = stack.enter_context(OpenAIServer(turns))
            reach = {"api_base": server.api_base, "api_key": "sk-of-a-test", **(client_args or {})}
            return LiteLLMModel(model_id, client_args=reach, **settings), server

        yield start


@pytest.fixture
def ask():
    """A request: `ask("hello", tool_specs=...)`."""

    def make(text="hello", **fields):
        return ModelRequest(messages=[{"role": "user", "content": [{"text": text}]}], **fields)

    return make


@pytest.fixture
def collect():
    """All events of an answer."""

    async def read(model, request):
        return [event async for event in model.stream(request)]

    return read


@pytest.fixture
def chunk():
    """A chunk of a stream: `chunk({"content": "x"}, "stop", usage=...)`."""

    def make(delta=None, finish=None, **fields):
        choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
        return {"choices": [] if delta is None and finish is None else [choice], **fields}

    return make


@pytest.fixture
def call():
    """A delta with one piece of a tool call; what is not given is left out."""

    def make(index=..., use_id=..., name=..., arguments=...):
        function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
        head = {key: value for key, value in (("index", index), ("id", use_id)) if value is not ...}
        return {"tool_calls": [{**head, "type": "function", "function": function}]}

    return make
