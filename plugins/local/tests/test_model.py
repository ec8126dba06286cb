from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace

import pytest

from ropewalk import Agent
from ropewalk.errors import ContextWindowOverflowException, ModelError
from ropewalk_local import LocalModel, bridge, prompt
from ropewalk_local.errors import NotGgufError, SchemaRefusedError

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def tiny():
    """A model with which only mechanics can be tested."""
    return LocalModel("smollm2-135m", n_ctx=1024, max_tokens=40)


@pytest.fixture(scope="module")
def small():
    return LocalModel("qwen2.5-coder-0.5b", n_ctx=2048, max_tokens=100)


def ended():
    """Whether all generating threads have ended, after giving them time to."""
    for thread in list(bridge._live):
        thread.join(30)

    return not bridge._live


async def events_of(model, request):
    return [event async for event in model.stream(request)]


def text_of(events):
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    return "".join(delta.get("text", "") for delta in deltas)


def use_of(events):
    """Name and arguments of the one tool use."""
    (start,) = [
        e["contentBlockStart"]["start"]["toolUse"] for e in events if e.get("contentBlockStart", {}).get("start")
    ]
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    return start["name"], json.loads("".join(delta["toolUse"]["input"] for delta in deltas))


def stop_of(events):
    return next(event["messageStop"]["stopReason"] for event in events if "messageStop" in event)


# -- answers -------------------------------------------------------------------------------------------------------


async def test_an_answer_streams_in_pieces_and_ends_in_exact_usage(tiny, ask):
    request = ask("Say hello to Ada.", system=({"text": "You are polite."},))
    events = await events_of(tiny, request)

    assert events[0] == {"messageStart": {"role": "assistant"}}
    assert [next(iter(event)) for event in events[-3:]] == ["contentBlockStop", "messageStop", "metadata"]
    assert sum("contentBlockDelta" in event for event in events) > 2
    usage = events[-1]["metadata"]["usage"]
    assert usage["inputTokens"] == tiny.count_tokens(request)
    assert 0 < usage["outputTokens"] <= 40
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert events[-1]["metadata"]["metrics"]["latencyMs"] > 0


async def test_equal_requests_get_equal_answers(tiny, ask):
    first, second = [text_of(await events_of(tiny, ask("Tell me about rope."))) for _ in range(2)]

    assert first == second != ""


async def test_an_answer_is_cut_at_its_limit(tiny, ask):
    events = await events_of(tiny, ask("Tell a very long story."))

    assert stop_of(events) == "max_tokens"
    assert events[-1]["metadata"]["usage"]["outputTokens"] == 40


async def test_a_request_beyond_the_window_is_an_overflow(tiny, ask):
    assert tiny.context_window == 1024

    with pytest.raises(ContextWindowOverflowException, match=r"has \d{4} tokens and the local model's window 1024"):
        await events_of(tiny, ask("word " * 1500))


async def test_an_output_schema_is_kept_to(tiny, ask):
    schema = {
        "$defs": {"Level": {"enum": ["low", "high"]}},
        "type": "object",
        "properties": {"level": {"$ref": "#/$defs/Level"}, "count": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["level", "count"],
        "additionalProperties": False,
    }
    value = json.loads(text_of(await events_of(tiny, ask("Report.", output_schema=schema))))

    assert value["level"] in {"low", "high"}
    assert 0 <= value["count"] <= 9


@pytest.mark.parametrize("schema", [None, {"enum": ["three"]}])
async def test_a_started_answer_is_gone_on_with(tiny, ask, schema):
    request = ask("Count to five.", output_schema=schema)
    started = {"role": "assistant", "content": [{"text": "One, two,"}]}

    assert text_of(await events_of(tiny, replace(request, messages=[*request.messages, started])))


# -- tools ---------------------------------------------------------------------------------------------------------


async def test_a_tool_is_called_with_its_arguments(small, ask, spec):
    weather = spec("get_weather", "Tells the current weather of a city.", city={"type": "string"})
    events = await events_of(small, ask("What's the weather in Paris?", tool_specs=(weather,)))

    assert use_of(events) == ("get_weather", {"city": "Paris"})
    assert stop_of(events) == "tool_use"


async def test_an_answer_beside_tools_is_its_text_alone(small, ask, spec):
    weather = spec("get_weather", "Tells the current weather of a city.", city={"type": "string"})
    events = await events_of(small, ask("Hi!", tool_specs=(weather,)))

    assert text_of(events)
    assert "answer" not in text_of(events)
    assert stop_of(events) == "end_turn"


async def test_a_result_is_answered(small, ask, spec):
    weather = spec("get_weather", "Tells the current weather of a city.", city={"type": "string"})
    use = {"toolUseId": "T1", "name": "get_weather", "input": {"city": "Paris"}}
    result = {"toolUseId": "T1", "status": "success", "content": [{"text": "17 C, rain"}]}
    request = ask("What's the weather in Paris?", tool_specs=(weather,))
    request = replace(
        request,
        messages=[
            *request.messages,
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ],
    )

    assert "17" in text_of(await events_of(small, request))


async def test_a_choice_is_enforced_whatever_the_model_would_like(tiny, ask, spec, monkeypatch):
    monkeypatch.setattr(prompt, "_EXAMPLES", "")
    tools = (spec("one"), spec("two", n={"enum": [7]}))
    events = await events_of(tiny, ask("Hi!", tool_specs=tools, tool_choice={"tool": {"name": "two"}}))

    assert use_of(events) == ("two", {"n": 7})


SCHEMAS = {
    "format": {"type": "string", "format": "date-time"},
    "own format": {"type": "string", "format": "odd"},
    "pattern": {"type": "string", "pattern": r"^\w+@(?:a|b)$"},
    "boolean schema": True,
    "empty": {},
    "list of types": {"type": ["string", "null"]},
    "optional": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "X"},
    "one of": {"oneOf": [{"type": "integer"}, {"type": "string"}], "discriminator": {"propertyName": "k"}},
    "all of": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
    "tuple": {"type": "array", "prefixItems": [{"type": "integer"}, True], "items": False},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^a"}},
    "if": {"type": "object", "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
    "not": {"not": {"type": "string"}},
    "const": {"const": {"a": [1, None]}},
    "bounds": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
    "root": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1},
    "escaped": {"$ref": "#/$defs/A~1B"},
}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_a_tools_schema_is_understood(ask, spec, name, monkeypatch):
    monkeypatch.setattr(prompt, "_EXAMPLES", "")  # reading them takes two seconds
    tool = spec("use_it", v=SCHEMAS[name])
    tool["inputSchema"]["json"]["$defs"] = {"A/B": {"type": "integer"}}
    model = LocalModel("smollm2-135m", n_ctx=1024, max_tokens=4)

    events = await events_of(model, ask("Hi!", tool_specs=(tool,), tool_choice={"any": {}}))

    assert stop_of(events) == "max_tokens"  # generation began, so the grammar was accepted


async def test_what_the_runtime_refuses_is_a_model_error(ask, monkeypatch):
    class Refusing:
        def chat(self, body, emit, stopped):
            raise ValueError("Unable to generate parser for this template")

    model = LocalModel("smollm2-135m")
    monkeypatch.setattr(model, "_ready", lambda stopped: Refusing())

    with pytest.raises(ModelError, match="runtime refuses the request: Unable to generate"):
        await events_of(model, ask("Hi!"))


async def test_a_schema_that_the_runtime_refuses_is_an_error_with_the_tools_name(tiny, ask, spec):
    tools = (spec("good"), spec("bad", x={"type": "odd"}))

    with pytest.raises(SchemaRefusedError, match=r"the tool 'bad' .*unrecognized type odd"):
        await events_of(tiny, ask("Hi!", tool_specs=tools))


def test_control_tokens_of_users_are_ordinary_text(tiny, ask):
    marker = "<|im_end|>"
    grown = tiny.count_tokens(ask("a" + marker * 5)) - tiny.count_tokens(ask("a"))

    assert grown > 10


# -- cancelling, sharing -------------------------------------------------------------------------------------------


async def test_closing_ends_the_generation(tiny, ask):
    model = LocalModel("smollm2-135m", n_ctx=1024, max_tokens=900)
    async with aclosing(model.stream(ask("Tell a very long story."))) as stream:
        async for event in stream:
            if "contentBlockDelta" in event:
                break

    assert ended()


async def test_cancelling_a_long_prompt_returns_before_it_is_read(tiny, ask):
    async def consume():
        async for _ in tiny.stream(ask("word " * 900)):
            pass

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended()


async def test_a_request_that_waits_for_a_slot_can_be_cancelled(ask):
    model = LocalModel("smollm2-135m", n_ctx=1024, max_tokens=900, parallel=1)
    async with aclosing(model.stream(ask("Tell a very long story."))) as first:
        async for event in first:
            if "contentBlockDelta" in event:
                break

        second = asyncio.create_task(events_of(model, ask("Hi!")))
        await asyncio.sleep(0.1)
        assert not second.done()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second

        assert "contentBlockDelta" in await anext(first)

    assert ended()


async def test_many_agents_share_one_engine(tiny, ask):
    other = LocalModel("smollm2-135m", n_ctx=1000, max_tokens=8)
    answers = await asyncio.gather(*(events_of(model, ask(f"Say {n}.")) for n in range(3) for model in (tiny, other)))

    assert all(text_of(events) for events in answers)
    assert tiny._ready() is other._ready()
    assert LocalModel("smollm2-135m", n_ctx=512)._ready() is not tiny._ready()


async def test_what_requests_have_in_common_is_computed_once(tiny, ask, spec):
    tools = (spec("one"), spec("two"))
    await events_of(tiny, ask("Hi!", tool_specs=tools))
    timings = []
    body = tiny._body(ask("Bye!", tool_specs=tools), None)
    tiny._ready().chat(body, lambda chunk: timings.append(chunk.get("timings")) and False)

    assert timings[-1]["cache_n"] > 10 * timings[-1]["prompt_n"]


def test_one_model_serves_one_loop_after_another(tiny, ask):
    answers = [asyncio.run(events_of(tiny, ask("Say hello."))) for _ in range(2)]

    assert text_of(answers[0]) == text_of(answers[1])


# -- the runtime's port --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/props"),
        ("GET", "/slots"),
        ("POST", "/tokenize"),
        ("POST", "/v1/chat/completions"),
    ],
)
@pytest.mark.parametrize("key", [None, "wrong"])
def test_the_port_is_on_loopback_and_closed_without_the_key(tiny, method, path, key):
    host, port = tiny._ready().address.split(":")
    assert host == "127.0.0.1"

    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connection.request(method, path, json.dumps({"content": "a", "messages": []}), headers)
    status = connection.getresponse().status
    connection.close()

    assert status == 401


# -- files ---------------------------------------------------------------------------------------------------------


async def test_any_gguf_can_be_named_by_its_path(tiny, ask):
    path = tiny._ready().header.path

    assert text_of(await events_of(LocalModel(path, n_ctx=1024, max_tokens=4), ask()))


async def test_a_path_to_something_else_is_refused(tmp_path, ask):
    (tmp_path / "a.gguf").write_text("no model")

    with pytest.raises(NotGgufError):
        await events_of(LocalModel(tmp_path / "a.gguf"), ask())


# -- the process ---------------------------------------------------------------------------------------------------

PREAMBLE = """
import asyncio, os, sys
from ropewalk import ModelRequest
from ropewalk_local import LocalModel
model = LocalModel("smollm2-135m", n_ctx=512, max_tokens=400)
request = ModelRequest([{"role": "user", "content": [{"text": "Tell a very long story."}]}])
"""
LEAVES = """
async def main():
    async for event in model.stream(request):
        if "contentBlockDelta" in event:
            print("leaving", flush=True)
            HOW
asyncio.run(main())
"""
FORKS = """
before = model.count_tokens(request)
child = os.fork()
if child == 0:
    same = model.count_tokens(request) == before
    sys.exit(7 if same else 8)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), model.count_tokens(request) == before)
"""


def run_script(code):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREAMBLE + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("how", ["return", "sys.exit(0)", "raise KeyboardInterrupt"])
def test_leaving_in_the_middle_of_an_answer_neither_hangs_nor_crashes(how):
    done = run_script(LEAVES.replace("HOW", how))

    assert done.stdout == "leaving\n"
    assert done.returncode == (0 if "Keyboard" not in how else -2)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_child_loads_its_own_engine():
    done = run_script(FORKS)

    assert (done.stdout, done.returncode) == ("7 True\n", 0)


def test_the_runtime_prints_nothing():
    done = run_script("model.count_tokens(request)")

    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


# -- the whole -----------------------------------------------------------------------------------------------------


class Tool:
    effect = "pure"

    def __init__(self, tool_spec, body):
        self.tool_name = tool_spec["name"]
        self.tool_spec = tool_spec
        self.body = body
        self.calls = []

    async def invoke(self, call):
        self.calls.append(call.tool_use["input"])
        text = self.body(**call.tool_use["input"])
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


async def test_an_agent_finds_a_file_and_counts_its_lines(spec):
    find = Tool(
        spec(
            "find_text",
            "Finds the lines that contain a text. Returns path:line: text.",
            optional=("folder",),
            text={"type": "string", "description": "What to look for"},
            folder={"type": "string", "description": "Where to look", "default": "."},
        ),
        lambda text, folder=".": "core/src/messages.py:14: class History(list):",
    )
    count = Tool(
        spec("count_lines", "Counts the lines of a file.", path={"type": "string", "description": "Path of the file"}),
        lambda path: "217" if path == "core/src/messages.py" else f"There is no file {path}.",
    )
    agent = Agent(model="local:qwen2.5-coder-1.5b", tools=[find, count], callback_handler=None)

    result = await agent.invoke_async("Find the file under core/ that defines the history class, then count its lines")

    assert "istory" in find.calls[0]["text"]
    assert count.calls == [{"path": "core/src/messages.py"}]
    assert "217" in str(result)
    assert result.stop_reason == "end_turn"
