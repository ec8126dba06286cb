"""Answers to interrupts: falsy ones, and those of parallel calls in any order and twice (scenarios A25 and A26)."""

from __future__ import annotations

import copy

import pytest

from ropewalk import (
    BeforeToolCallEvent,
    BeforeToolsEvent,
    ConcurrentToolExecutor,
    SequentialToolExecutor,
    ToolContext,
    tool,
)
from ropewalk_testing import ScriptedModel, assert_valid_history, use


def answers(*pairs):
    return [{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in pairs]


@pytest.fixture
def heard():
    """The answers that have come, in order."""
    return []


@pytest.fixture
def approval(heard):
    """A tool that asks and notes the answer."""

    @tool(context=True)
    def approval(of: str, tool_context: ToolContext) -> str:
        """Asks."""
        heard.append((of, tool_context.interrupt("approve", of)))
        return f"{of}: {heard[-1][1]!r}"

    return approval


@pytest.fixture
def done():
    """The paths for which the tool without questions has run."""
    return []


@pytest.fixture
def plain(done):
    """A tool that does not ask."""

    @tool
    async def plain(of: str) -> str:
        """Works."""
        done.append(of)
        return of

    return plain


# -- A25 -----------------------------------------------------------------------------------------------------------

FALSY = [False, 0, "", None]


@pytest.mark.parametrize("falsy", FALSY)
@pytest.mark.parametrize("where", ["tool", "before_tool_call", "before_tools", "sub-agent"])
def test_a_falsy_answer_is_an_answer(ask, make_agent, approval, plain, heard, done, where, falsy):
    """Scenario A25."""
    hooks, tools, turn = [], [plain], use("plain", {"of": "a"}, id="T1")
    if where == "tool":
        tools, turn = [approval], use("approval", {"of": "a"}, id="T1")
    elif where == "sub-agent":
        child, _ = make_agent([use("approval", {"of": "a"}), "fine"], name="child", tools=[approval])
        tools, turn = [child], use("child", {"input": "go"}, id="T1")
    else:
        hooks = [_asking(BeforeToolCallEvent if where == "before_tool_call" else BeforeToolsEvent, heard)]

    agent, model = make_agent([turn, "done"], tools=tools, hooks=hooks)
    (question,) = ask(agent, "go").interrupts

    result = ask(agent, answers((question, falsy)))

    assert (result.stop_reason, result.interrupts, model.calls) == ("end_turn", None, 2)
    ((_, answer),) = heard
    assert (answer, type(answer)) == (falsy, type(falsy))
    assert done == ([] if where in ("tool", "sub-agent") else ["a"])
    assert_valid_history(agent.messages)


class _asking:  # noqa: N801 - reads as a function
    """Registers a callback that asks."""

    def __init__(self, kind, heard):
        self.kind, self.heard = kind, heard

    def register_hooks(self, registry):
        registry.add_callback(self.kind, lambda event: self.heard.append(("a", event.interrupt("approve"))))


# -- A26 -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def paused(ask, make_agent, approval, plain):
    """An agent with two calls that ask around one that does not, its model, and its questions."""
    uses = [
        use("approval", {"of": "first"}, id="T1"),
        use("plain", {"of": "between"}, id="T2"),
        use("approval", {"of": "second"}, id="T3"),
    ]
    agent, model = make_agent([uses, "done"], tools=[approval, plain], tool_executor=ConcurrentToolExecutor())
    result = ask(agent, "go")
    assert result.stop_reason == "interrupt"
    return agent, model, sorted(result.interrupts, key=lambda each: each.reason)


def test_each_of_two_parallel_calls_gets_its_own_answer_in_whatever_order_they_come(
    ask, paused, heard, done, tool_results
):
    """Scenario A26."""
    agent, model, (first, second) = paused

    still = ask(agent, answers((second, "two")))
    assert (still.stop_reason, still.interrupts) == ("interrupt", [first])
    assert (heard, model.calls) == ([("second", "two")], 1)

    assert str(ask(agent, answers((first, "one")))) == "done\n"
    assert (heard, done, model.calls) == ([("second", "two"), ("first", "one")], ["between"], 2)
    results = tool_results(agent.messages)
    assert [each["toolUseId"] for each in results] == ["T1", "T2", "T3"]
    assert [each["content"][0]["text"] for each in results] == ["first: 'one'", "between", "second: 'two'"]
    assert_valid_history(agent.messages)


def test_both_answers_may_come_at_once(ask, paused, heard, done):
    """Scenario A26."""
    agent, model, (first, second) = paused

    assert str(ask(agent, answers((second, "two"), (first, "one")))) == "done\n"

    assert sorted(heard) == [("first", "one"), ("second", "two")]
    assert (done, model.calls) == (["between"], 2)


def test_an_answered_question_cannot_be_answered_again(ask, paused, heard, done):
    """Scenario A26."""
    agent, model, (first, second) = paused
    ask(agent, answers((second, "two")))

    with pytest.raises(KeyError, match="answered before"):
        ask(agent, answers((second, "three")))

    ask(agent, answers((first, "one")))
    for again in (first, second):
        with pytest.raises(ValueError, match="none is pending"):
            ask(agent, answers((again, "three")))

    assert (heard, done, model.calls) == ([("second", "two"), ("first", "one")], ["between"], 2)


@pytest.mark.parametrize("good_first", [True, False])
def test_an_unknown_id_is_refused_and_with_it_the_good_answer_beside_it(ask, paused, heard, done, good_first):
    """Scenario A26."""
    agent, model, (first, second) = paused
    before = copy.deepcopy((list(agent.messages), agent.suspension.to_dict()))
    good = answers((first, "one"))
    bad = [{"interruptResponse": {"interruptId": first.id[:-1], "response": "x"}}]

    with pytest.raises(KeyError, match="no open interrupt"):
        ask(agent, [*good, *bad] if good_first else [*bad, *good])

    assert (list(agent.messages), agent.suspension.to_dict()) == before
    assert (heard, model.calls) == ([], 1)
    ask(agent, answers((first, "one"), (second, "two")))
    assert (sorted(heard), done) == ([("first", "one"), ("second", "two")], ["between"])


def test_calls_one_after_the_other_ask_one_after_the_other(ask, make_agent, approval, plain, heard, done):
    """Scenario A26."""
    uses = [
        use("plain", {"of": "before"}, id="T1"),
        use("approval", {"of": "first"}, id="T2"),
        use("approval", {"of": "second"}, id="T3"),
        use("plain", {"of": "after"}, id="T4"),
    ]
    agent, model = make_agent([uses, "done"], tools=[approval, plain], tool_executor=SequentialToolExecutor())

    (first,) = ask(agent, "go").interrupts
    assert (first.reason, done) == ("first", ["before"])
    (second,) = ask(agent, answers((first, 1))).interrupts
    assert (second.reason, done) == ("second", ["before"])
    assert str(ask(agent, answers((second, 2)))) == "done\n"

    assert (heard, done, model.calls) == ([("first", 1), ("second", 2)], ["before", "after"], 2)
    assert_valid_history(agent.messages)


def test_parallel_sub_agents_get_their_own_answers_and_finished_ones_do_not_run_again(
    ask, make_agent, approval, heard, tool_results
):
    """Scenario A26."""

    def child_model(request):
        said = request.messages[0]["content"][0]["text"]
        if len(request.messages) > 1 or said == "between":
            return f"{said} is done"

        return use("approval", {"of": said}, id="C1")

    calls = []

    def counted(request):
        calls.append(request.messages[0]["content"][0]["text"])
        return child_model(request)

    child, _ = make_agent(ScriptedModel(counted), name="child", tools=[approval])
    uses = [use("child", {"input": name}, id=f"T-{name}") for name in ("first", "between", "second")]
    agent, model = make_agent([uses, "done"], tools=[child])
    first, second = sorted(ask(agent, "go").interrupts, key=lambda each: each.reason)

    (still,) = ask(agent, answers((second, "two"))).interrupts
    assert (still, heard) == (first, [("second", "two")])
    ask(agent, answers((first, "one")))

    assert (heard, model.calls) == ([("second", "two"), ("first", "one")], 2)
    assert sorted(calls) == ["between", "first", "first", "second", "second"]
    assert [each["content"][0]["text"] for each in tool_results(agent.messages)] == [
        "first is done",
        "between is done",
        "second is done",
    ]
