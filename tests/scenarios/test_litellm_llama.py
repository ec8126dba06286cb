"""LiteLLM against a real llama.cpp server with real weights: its chunks, its tool-call deltas, its overflow."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ropewalk import Agent, hookimpl, tool
from ropewalk.errors import ContextWindowOverflowException
from ropewalk.model import ModelRequest

pytestmark = pytest.mark.model
pytest.importorskip("ropewalk_litellm")
pytest.importorskip("ropewalk_local")


@pytest.fixture(scope="module")
def address():
    """The server's address; it runs in this process, with the small model's weights."""
    import xllamacpp

    from ropewalk_local import catalog, fetch

    params = xllamacpp.CommonParams()
    params.model.path = str(fetch.ensure(catalog.find("qwen2.5-coder-0.5b")))
    params.n_ctx = 2048
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.warmup = params.fit_params = params.ui = False
    params.verbosity = -1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    yield str(server.listening_address)
    del server


@pytest.fixture
def model(address):
    from ropewalk_litellm import LiteLLMModel

    reach = {"api_base": f"{address}/v1", "api_key": "none", "timeout": 120}
    return LiteLLMModel("openai/qwen", client_args=reach, params={"temperature": 0, "max_tokens": 60})


def user(words):
    return {"role": "user", "content": [{"text": words}]}


def episode(number, question, expression, result):
    """A question that was answered with the tool, as an example to follow."""
    call = {"toolUseId": f"c{number}", "name": "calculator", "input": {"expression": expression}}
    answer = {"toolUseId": f"c{number}", "status": "success", "content": [{"text": result}]}
    return [
        user(question),
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": answer}]},
        {"role": "assistant", "content": [{"text": f"It is {result}."}]},
    ]


EXAMPLES = [*episode(1, "What is 2 * 3?", "2 * 3", "6"), *episode(2, "What is 15 + 9?", "15 + 9", "24")]
BEGUN_CALL = {"role": "assistant", "content": [{"text": "<tool_call>\n"}]}
"""The model goes on from here: by itself it writes its calls in a form that llama.cpp does not read as calls."""

CALCULATOR = {
    "name": "calculator",
    "description": "Evaluates an arithmetic expression.",
    "inputSchema": {
        "json": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
    },
}


async def test_a_text_is_streamed(model):
    events = [event async for event in model.stream(ModelRequest(messages=[user("Count from 1 to 5.")]))]

    pieces = [e["contentBlockDelta"]["delta"]["text"] for e in events if "contentBlockDelta" in e]
    assert len(pieces) > 3
    assert "3" in "".join(pieces)
    usage = events[-1]["metadata"]["usage"]
    assert usage["inputTokens"] + usage.get("cacheReadInputTokens", 0) > 5
    assert usage["outputTokens"] > 3


async def test_a_tool_call_is_streamed_in_deltas(model):
    messages = [*EXAMPLES, user("What is 17 * 23?"), BEGUN_CALL]
    request = ModelRequest(messages=messages, tool_specs=(CALCULATOR,))

    events = [event async for event in model.stream(request)]

    starts = [e["contentBlockStart"]["start"] for e in events if "contentBlockStart" in e]
    deltas = [e["contentBlockDelta"]["delta"] for e in events if "contentBlockDelta" in e]
    pieces = [delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta]
    assert [start["toolUse"]["name"] for start in starts if "toolUse" in start] == ["calculator"]
    assert len(pieces) > 3
    assert json.loads("".join(pieces)) == {"expression": "17 * 23"}
    assert {"messageStop": {"stopReason": "tool_use"}} in events


class BeginsCalls:
    """Puts the beginning of a call into the model's mouth where a question is to be answered."""

    name = "begins-calls"

    @hookimpl
    async def around_model_call(self, request, call_next):
        if "text" in request.messages[-1]["content"][-1]:
            request = dataclasses.replace(request, messages=[*request.messages, BEGUN_CALL])

        return await call_next(request)


def test_an_agent_uses_a_tool(model):
    asked = []

    @tool
    def calculator(expression: str) -> str:
        """Evaluates an arithmetic expression."""
        asked.append(expression)
        return "391"

    agent = Agent(model=model, tools=[calculator], messages=EXAMPLES, plugins=[BeginsCalls()], callback_handler=None)

    result = agent("What is 17 * 23?")

    assert asked == ["17 * 23"]
    assert "391" in str(result)


async def test_an_answer_is_held_to_a_schema(model):
    schema = {
        "type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"],
        "additionalProperties": False,
    }  # fmt: skip
    request = ModelRequest(messages=[user("Which colour has the sky?")], output_schema=schema)

    events = [event async for event in model.stream(request)]

    said = "".join(e["contentBlockDelta"]["delta"].get("text", "") for e in events if "contentBlockDelta" in e)
    assert json.loads(said)["colour"] in ("red", "blue")


async def test_a_prompt_that_is_too_long_is_an_overflow(model):
    request = ModelRequest(messages=[user("word " * 3000)])

    with pytest.raises(ContextWindowOverflowException):
        async for _ in model.stream(request):
            pass
