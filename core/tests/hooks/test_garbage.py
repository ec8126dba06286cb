"""Hooks that answer nonsense while an agent runs: the error names the hook, and the history stays valid."""

from __future__ import annotations

import asyncio

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems, use

from ropewalk import Agent
from ropewalk.errors import RopewalkError

pytestmark = pytest.mark.usefixtures("site")  # no plugin is installed


def sync(answer):
    """A synchronous implementation that gives this answer, of a hook that takes no argument by position."""

    def implementation(self):
        return answer() if callable(answer) else answer

    return implementation


def awaited(answer):
    async def implementation(self):
        return answer() if callable(answer) else answer

    return implementation


async def coroutine():
    return []


NONSENSE = {
    "provide_model of a text": ({"provide_model": sync("a model")}, "provide_model"),
    "provide_model of a coroutine": ({"provide_model": sync(coroutine)}, "provide_model of plugin 'odd'"),
    "provide_tools of a text": ({"provide_tools": sync("a tool")}, "provide_tools of plugin 'odd'"),
    "provide_tools of no tools": ({"provide_tools": sync([3])}, "provide_tools"),
    "provide_tools of a coroutine": ({"provide_tools": sync(coroutine)}, "provide_tools of plugin 'odd'"),
    "around_invocation of a text": ({"around_invocation": awaited("done")}, "around_invocation"),
    "around_invocation of nothing": ({"around_invocation": awaited(None)}, "around_invocation"),
    "around_model_call of a text": ({"around_model_call": awaited("done")}, "around_model_call"),
    "around_model_call of nothing": ({"around_model_call": awaited(None)}, "around_model_call"),
    "around_tools of a list": ({"around_tools": awaited([])}, "around_tools"),
    "around_tools of nothing": ({"around_tools": awaited(None)}, "around_tools"),
    "around_tool_call of nothing": ({"around_tool_call": awaited(None)}, "around_tool_call"),
    "execute_tools of a text": ({"execute_tools": awaited("done")}, "execute_tools"),
    "execute_tools of too few": ({"execute_tools": awaited([])}, "execute_tools"),
    "decide_stop of a text": ({"decide_stop": awaited("now")}, "decide_stop"),
    "decide_continue of a text": ({"decide_continue": awaited("go on")}, "decide_continue"),
    "decide_continue of a number": ({"decide_continue": awaited(3)}, "decide_continue"),
    "manage_context of a text": ({"manage_context": awaited("drop it")}, "manage_context"),
    "manage_context of texts": ({"manage_context": awaited(["drop it"])}, "manage_context"),
    "intervene of a flag": ({"intervene": awaited(True)}, "intervene of plugin 'odd'"),
}

ENTRIES = [pytest.param(*entry, id=name) for name, entry in NONSENSE.items()]


def run(plugin, *turns):
    """Builds and runs an agent; gives it and the error."""
    agent = None
    try:
        agent = Agent(
            model=None if "provide_model" in dir(type(plugin)) else FakeModel(*turns),
            tools=[FakeTool("step")],
            plugins=[plugin],
        )
        agent("Go.")
    except Exception as error:  # noqa: BLE001 - looked at by the test
        return agent, error

    return agent, None


@pytest.mark.parametrize(("body", "named"), ENTRIES)
def test_the_error_says_whose_answer_it_is(body, named):
    _, error = run(make_plugin("odd", **body), use("step"), "done")

    assert isinstance(error, RopewalkError), error
    assert named in f"{error} {getattr(error, '__notes__', '')}"
    assert ": " in str(error), "it says what to do"


@pytest.mark.parametrize("body", [body for body, _ in NONSENSE.values()], ids=NONSENSE)
def test_the_history_stays_valid(body):
    agent, error = run(make_plugin("odd", **body), use("step"), "done")

    assert error is not None
    assert agent is None or problems(agent.messages) == []


@pytest.mark.parametrize("answer", ["soon", float("nan"), [1]], ids=repr)
def test_a_delay_that_is_none_is_refused(answer):
    _, error = run(make_plugin("odd", decide_retry=awaited(answer)), ConnectionError("gone"), "done")

    assert isinstance(error, RopewalkError), error
    assert "decide_retry" in str(error)


@pytest.mark.parametrize(
    "result", [3, "text", [], {}, {"content": "text"}, {"content": [1]}, {"content": [], "status": 3}]
)
def test_a_tool_result_of_a_hook_that_is_none_becomes_an_error_result(result):
    agent, error = run(make_plugin("odd", around_tool_call=awaited(result)), use("step", {}, "T1"), "done")

    assert error is None
    [block] = agent.messages[2]["content"]
    assert (block["toolResult"]["toolUseId"], block["toolResult"]["status"]) == ("T1", "error")
    assert problems(agent.messages) == []


@pytest.mark.parametrize("results", [[3], [None], ["text"], [{}], [{"toolUseId": "T1", "content": 3}]], ids=repr)
def test_results_of_an_executor_that_are_none_become_error_results(results):
    agent, error = run(make_plugin("odd", execute_tools=awaited(results)), use("step", {}, "T1"), "done")

    assert error is None
    assert [block["toolResult"]["status"] for block in agent.messages[2]["content"]] == ["error"]
    assert problems(agent.messages) == []


@pytest.mark.parametrize("hook", ["on_agent_ready", "check_call", "on_delta"])
def test_an_awaitable_of_a_synchronous_hook_without_an_answer_is_refused(hook):
    _, error = run(make_plugin("odd", **{hook: sync(coroutine)}), "done")

    assert isinstance(error, RopewalkError)
    assert f"{hook} of plugin 'odd' returned an awaitable and the hook is synchronous" in str(error)


@pytest.mark.parametrize("hook", ["on_agent_ready", "check_call", "on_delta", "on_event", "init_agent"])
def test_an_answer_of_a_hook_that_asks_for_none_is_passed_over(hook):
    make = sync if hook in {"on_agent_ready", "check_call", "on_delta"} else awaited
    agent, error = run(make_plugin("odd", **{hook: make(3)}), "done")

    assert error is None
    assert problems(agent.messages) == []


def test_a_task_from_a_synchronous_hook_is_refused_and_harms_nobody():
    async def main():
        def provide_tools(self):
            return asyncio.ensure_future(coroutine())

        with pytest.raises(RopewalkError, match="returned an awaitable"):
            Agent(model=FakeModel(), plugins=[make_plugin("odd", provide_tools=provide_tools)])

    asyncio.run(main())
