"""Tools: how bodies run and what becomes of what they return or raise (conformance 41 to 49)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading

import pytest
from pydantic import BaseModel

from ropewalk import tool
from ropewalk_testing import assert_valid_history, use

PATIENCE = 30
"""Seconds after which a wait that should end at once is given up as failed."""


class Point(BaseModel):
    x: int
    y: int


@pytest.fixture
def answer(ask, make_agent, tool_results):
    """Runs one tool through an agent and gives the one result that the model sees."""

    def run(body, arguments=None):
        agent, _ = make_agent([use(body.tool_name, arguments or {}, id="T1"), "ok"], tools=[body])
        assert ask(agent, "go").stop_reason == "end_turn"
        (result,) = tool_results(agent.messages)
        assert result["toolUseId"] == "T1"
        return result

    return run


def returning(value):
    @tool
    def give():
        """Gives a value."""
        return value

    return give


def value_of(result):
    """The value in the one content block, whether it stands there as JSON or as JSON text."""
    (block,) = result["content"]
    return block["json"] if "json" in block else json.loads(block["text"])


# -- how bodies run ----------------------------------------------------------------------------------------------


async def test_a_sync_tool_runs_in_a_worker_thread_and_the_loop_stays_responsive(make_agent):
    """Conformance 41."""
    go_on, started = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    seen = []

    @tool
    def wait() -> str:
        """Waits until the event loop's own thread says go on."""
        loop.call_soon_threadsafe(started.set)
        seen.append((threading.get_ident(), go_on.wait(PATIENCE)))
        return "done"

    async def release():
        await started.wait()
        go_on.set()

    agent, _ = make_agent([use("wait", {}), "ok"], tools=[wait])

    await asyncio.gather(agent.invoke_async("go"), release())

    ((thread, released),) = seen
    assert released, "the loop was blocked while the tool ran"
    assert thread != threading.get_ident()


def test_an_async_tool_is_awaited(answer):
    """Conformance 42."""

    @tool
    async def later(n: int) -> str:
        """Answers later."""
        await asyncio.sleep(0)
        return f"got {n}"

    assert answer(later, {"n": 3}) == {"toolUseId": "T1", "status": "success", "content": [{"text": "got 3"}]}


def test_an_async_tool_runs_on_the_callers_loop(make_agent):
    """Conformance 42."""
    loops = []

    @tool
    async def look() -> str:
        """Looks at the loop."""
        loops.append(asyncio.get_running_loop())
        return "seen"

    agent, _ = make_agent([use("look", {}), "ok"], tools=[look])

    async def main():
        await agent.invoke_async("go")
        return asyncio.get_running_loop()

    mine = asyncio.run(main())
    assert loops == [mine]


@pytest.mark.parametrize("kind", ["async generator", "sync generator"])
def test_a_generators_items_are_streamed_and_the_last_is_the_result(make_agent, events_of, tool_results, kind):
    """Conformance 43."""

    @tool(name="count")
    async def count_async():
        """Counts."""
        for item in ("one", "two", "three"):
            yield item

    @tool(name="count")
    def count_sync():
        """Counts."""
        yield from ("one", "two", "three")

    body = count_async if kind == "async generator" else count_sync
    agent, _ = make_agent([use("count", {}, id="T1"), "ok"], tools=[body])

    events = events_of(agent, "go")

    shown = [event["tool_stream_event"] for event in events if event.get("type") == "tool_stream"]
    assert [event["data"] for event in shown] == ["one", "two", "three"]
    assert {event["tool_use"]["toolUseId"] for event in shown} == {"T1"}
    (result,) = tool_results(agent.messages)
    assert (result["status"], result["content"]) == ("success", [{"text": "three"}])


def test_items_are_streamed_before_the_result_is_in_the_history(make_agent, events_of):
    """Conformance 43."""

    @tool
    async def count():
        """Counts."""
        yield "one"
        yield "two"

    agent, _ = make_agent([use("count", {}), "ok"], tools=[count])

    events = events_of(agent, "go")

    streamed = [place for place, event in enumerate(events) if event.get("type") == "tool_stream"]
    answered = [place for place, event in enumerate(events) if event.get("message", {}).get("role") == "user"]
    assert max(streamed) < min(answered)


def test_a_generator_that_fails_half_way_is_an_error_result(answer, result_text):
    """Conformance 43."""

    @tool
    async def break_off():
        """Breaks off."""
        yield "one"
        raise RuntimeError("broke")

    result = answer(break_off)

    assert result["status"] == "error"
    assert "broke" in result_text(result)


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_an_empty_generator_is_a_clear_error(answer, result_text, kind):
    """Conformance 45 (B)."""

    @tool(name="nothing")
    async def nothing_async():
        """Yields nothing."""
        return
        yield

    @tool(name="nothing")
    def nothing_sync():
        """Yields nothing."""
        return
        yield

    result = answer(nothing_async if kind == "async" else nothing_sync)

    assert result["status"] == "error"
    assert "generator" in result_text(result)
    assert "UnboundLocal" not in result_text(result)
    assert "StopIteration" not in result_text(result)


# -- what they return --------------------------------------------------------------------------------------------


def test_text_is_the_text_of_the_result(answer):
    """Conformance 46."""
    assert answer(returning("hello")) == {"toolUseId": "T1", "status": "success", "content": [{"text": "hello"}]}


@pytest.mark.parametrize("value", [{"a": [1, None, "x"]}, [1, 2], {}, [], True, 3, 1.5])
def test_values_are_shown_as_json(answer, value):
    """Conformance 46."""
    result = answer(returning(value))

    assert result["status"] == "success"
    assert value_of(result) == value


def test_none_is_a_success_with_content(answer):
    """Conformance 46."""
    result = answer(returning(None))

    assert result["status"] == "success"
    assert result["content"] in ([{"text": "null"}], [{"text": "None"}], [{"json": None}])


def test_a_pydantic_model_is_shown_as_json(answer):
    """Conformance 46."""
    assert value_of(answer(returning(Point(x=1, y=2)))) == {"x": 1, "y": 2}


@pytest.mark.parametrize("status", ["success", "error"])
def test_a_dict_with_status_and_content_is_the_result(answer, status):
    """Conformance 46."""
    content = [{"text": "one"}, {"json": {"two": 2}}]

    result = answer(returning({"status": status, "content": content}))

    assert result == {"toolUseId": "T1", "status": status, "content": content}


def test_an_id_in_a_returned_result_does_not_count(answer):
    """Conformance 46."""
    given = {"toolUseId": "another", "status": "success", "content": [{"text": "x"}]}

    assert answer(returning(given))["toolUseId"] == "T1"
    assert given["toolUseId"] == "another"


@pytest.mark.parametrize("content", ["text", [1], [{"nonsense": 1}], None, [{}]])
def test_a_returned_result_of_a_wrong_shape_never_reaches_the_model_as_it_is(answer, content):
    """Conformance 46."""
    known = {"text", "json", "image", "document", "video"}

    result = answer(returning({"status": "success", "content": content}))

    assert result["content"]
    assert all(len(block) == 1 and set(block) <= known for block in result["content"])


# -- what they raise ---------------------------------------------------------------------------------------------


class OddError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("bad date"), "Error: bad date"),
        (RuntimeError("no disk"), "Error: RuntimeError - no disk"),
        (OddError("odd"), "Error: OddError - odd"),
        (KeyError("k"), "Error: KeyError - 'k'"),
    ],
)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_exception_is_an_error_result(answer, error, expected, asynchronous):
    """Conformance 47."""

    @tool(name="fail")
    def fail_sync():
        """Fails."""
        raise error

    @tool(name="fail")
    async def fail_async():
        """Fails."""
        raise error

    result = answer(fail_async if asynchronous else fail_sync)

    assert (result["status"], result["content"]) == ("error", [{"text": expected}])


def test_an_exception_whose_text_cannot_be_made_is_an_error_result(answer, result_text):
    """Conformance 47."""

    class Mute(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError("no text")

    @tool
    def fail():
        """Fails."""
        raise Mute

    result = answer(fail)

    assert result["status"] == "error"
    assert "Mute" in result_text(result)


@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("y")], ids=repr)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_control_flow_exceptions_of_a_tool_do_not_derail_the_run(answer, error, asynchronous):
    """Conformance 47."""

    @tool(name="fail")
    def fail_sync():
        """Fails."""
        raise error

    @tool(name="fail")
    async def fail_async():
        """Fails."""
        raise error

    assert answer(fail_async if asynchronous else fail_sync)["status"] == "error"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_tool_that_asks_for_the_end_gets_it_and_the_history_is_closed(
    ask, make_agent, tool_results, error, asynchronous
):
    """Conformance 49 (B)."""

    @tool(name="leave")
    def leave_sync():
        """Leaves."""
        raise error

    @tool(name="leave")
    async def leave_async():
        """Leaves."""
        raise error

    @tool
    def stay() -> str:
        """Stays."""
        return "here"

    turns = [[use("stay", {}, id="A"), use("leave", {}, id="B"), use("stay", {}, id="C")], "back"]
    agent, _ = make_agent(turns, tools=[leave_async if asynchronous else leave_sync, stay])

    with pytest.raises(type(error)) as caught:
        ask(agent, "go")

    assert caught.value.args == error.args
    assert [result["toolUseId"] for result in tool_results(agent.messages)] == ["A", "B", "C"]
    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "back\n"


class Odd(BaseException):
    pass


@pytest.mark.parametrize("error", [Odd("odd"), GeneratorExit()], ids=repr)
def test_whatever_a_tool_raises_its_use_is_answered_and_the_agent_is_free(ask, make_agent, tool_results, error):
    """Conformance 49 (B)."""

    @tool
    async def leave():
        """Leaves."""
        raise error

    agent, _ = make_agent([use("leave", {}, id="T1"), "back", "back"], tools=[leave])

    with contextlib.suppress(Odd, GeneratorExit):  # whether it is passed on is not what counts here
        ask(agent, "go")

    assert [result["toolUseId"] for result in tool_results(agent.messages)] == ["T1"]
    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "back\n"
