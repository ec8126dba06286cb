"""What the loop does with the edits of context plugins, and with an overflow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, results_of, texts, use

from ropewalk import Agent, HistoryEdit, Retry, current_run
from ropewalk.errors import ContextWindowOverflowException
from ropewalk.kits.calls.outcomes import Stop, ToolsOutcome
from ropewalk.loop.model_turn import build_request

LONG = [{"role": role, "content": [{"text": text * 100}]} for role, text in (("user", "u"), ("assistant", "a"))] * 2


def dropper(name, seen=None):
    async def manage_context(self, request, reason):
        assert len(request.ids) == len(request.messages)
        if reason != "after_invocation" and len(request.ids) > 2:
            return [HistoryEdit(request.ids[0], request.ids[1], (), name)]

        return None

    return make_plugin(name, manage_context=manage_context)


def test_each_context_plugin_is_asked_about_what_the_ones_before_it_have_left(ask):
    model = FakeModel("done")
    agent = Agent(model=model, messages=LONG, plugins=[dropper("one"), dropper("two")])
    ask(agent, "go")

    assert [texts(message) for message in model.requests[0]] == [["go"]]


@pytest.mark.parametrize("manager", ["none", "one that has nothing to drop", "one that says it has done something"])
def test_an_overflow_that_nobody_makes_smaller_is_raised_after_one_call(ask, manager):
    async def manage_context(self, request, reason):
        if reason == "overflow" and manager.endswith("something"):
            return [HistoryEdit(request.ids[-1], request.ids[-1], ({"role": "user", "content": [{"text": "go"}]},))]

        return None

    model = FakeModel(ContextWindowOverflowException("too much"), "never")
    plugins = [] if manager == "none" else [make_plugin(manage_context=manage_context)]
    agent = Agent(model=model, plugins=plugins)
    with pytest.raises(ContextWindowOverflowException, match="too much"):
        ask(agent, "go")

    assert model.calls == 1


def test_an_overflow_is_tried_again_with_a_request_that_was_made_smaller(ask):
    async def manage_context(self, request, reason):
        if reason == "overflow":
            assert isinstance(request.error, ContextWindowOverflowException)
            return [HistoryEdit(request.ids[0], request.ids[3])]

        return None

    model = FakeModel(ContextWindowOverflowException("too much"), "done")
    agent = Agent(model=model, messages=LONG, plugins=[make_plugin(manage_context=manage_context)])

    assert str(ask(agent, "go")) == "done\n"
    assert [len(request) for request in model.requests] == [5, 1]


def test_a_cancel_while_an_overflow_is_dealt_with_in_vain_is_no_error(ask):
    async def manage_context(self, request, reason, agent):
        if reason == "overflow":
            agent.cancel()

    model = FakeModel(ContextWindowOverflowException("too much"), "never")
    agent = Agent(model=model, plugins=[make_plugin(manage_context=manage_context)])

    assert ask(agent, "go").stop_reason == "cancelled"
    assert model.calls == 1


def test_what_a_context_plugin_does_to_the_list_is_its_edit_and_the_next_one_sees_it(ask):
    seen = []

    async def cut(self, request, reason, agent):
        if reason == "before_model":
            del agent.messages[:2]

    async def look(self, request, reason):
        if reason == "before_model":
            seen.append((list(request.ids), len(request.messages)))

    model = FakeModel("done")
    plugins = [make_plugin("cut", manage_context=cut), make_plugin("look", manage_context=look)]
    ask(Agent(model=model, messages=LONG, plugins=plugins), "go")

    assert seen == [([2, 3, 4], 3)]
    assert len(model.requests[0]) == 3


def test_what_a_context_plugin_that_fails_has_done_to_the_list_is_undone(ask):
    async def manage_context(self, request, reason, agent):
        agent.messages.clear()
        raise ValueError("manager")

    agent = Agent(model=FakeModel(), messages=LONG, plugins=[make_plugin(manage_context=manage_context)])
    with pytest.raises(ValueError, match="manager"):
        ask(agent, "go")

    assert agent.messages == LONG


@pytest.mark.parametrize(
    "end", [{"stop": Stop("limit_turns", {"why": "enough"})}, {"end_turn": "that is all"}], ids=str
)
def test_a_link_around_the_tools_may_end_the_run_when_they_are_answered(ask, end):
    async def around(self, batch, call_next):
        return ToolsOutcome((await call_next(batch)).results, **end)

    model = FakeModel(use("t", tool_use_id="T"), "never")
    agent = Agent(model=model, tools=[FakeTool("t")], plugins=[make_plugin(around_tools=around)])
    result = ask(agent, "go")

    assert model.calls == 1
    assert results_of(agent.messages) == {"T": "ok"}
    if "stop" in end:
        assert (result.stop_reason, result.state) == ("limit_turns", {"why": "enough"})
        assert len(agent.messages) == 3
    else:
        assert (result.stop_reason, result.state, str(result)) == ("end_turn", {}, "that is all\n")
        assert texts(agent.messages[-1]) == ["that is all"]


async def test_an_overflow_of_a_call_beside_the_conversation_leaves_the_conversation_alone():
    reasons = []

    async def manage_context(self, request, reason):
        reasons.append(reason)
        return [HistoryEdit(request.ids[0], request.ids[1])] if reason == "overflow" else None

    async def around(self, invocation, call_next):
        result = await call_next(invocation)
        with pytest.raises(ContextWindowOverflowException, match="aside"):
            await current_run().ask_model(build_request(current_run()), "summary")

        return result

    model = FakeModel("done", ContextWindowOverflowException("aside"), "never")
    plugin = make_plugin(manage_context=manage_context, around_invocation=around)
    agent = Agent(model=model, messages=LONG, plugins=[plugin])
    await agent.invoke_async("go")

    assert "overflow" not in reasons
    assert agent.messages[:4] == LONG
    assert model.calls == 2


@pytest.mark.parametrize("beside", [False, True], ids=["a turn", "a call beside the conversation"])
@pytest.mark.parametrize("feedback", [(), ({"text": "better"},)], ids=["without feedback", "with feedback"])
async def test_the_request_of_a_retry_is_the_one_of_the_next_attempt(beside, feedback):
    other = [{"role": "user", "content": [{"text": "other"}]}]

    async def around_model_call(self, request, call_next):
        outcome = await call_next(request)
        if (request.purpose == "turn") is beside or model.calls > 1 + beside:
            return outcome

        return Retry("again", replace(request, messages=other), feedback)

    async def around_invocation(self, invocation, call_next):
        result = await call_next(invocation)
        if beside:
            await current_run().ask_model(build_request(current_run()), "summary")

        return result

    model = FakeModel("one", "two", "three")
    plugin = make_plugin(around_model_call=around_model_call, around_invocation=around_invocation)
    await Agent(model=model, plugins=[plugin]).invoke_async("go")

    told = [text for message in model.requests[-1] for text in texts(message)]
    if feedback and not beside:
        assert told == ["go", "better"]  # a turn with feedback is asked for anew, from the history
    else:
        assert told == ["other", *(block["text"] for block in feedback)]


def test_the_window_is_known_to_the_first_who_are_asked(ask):
    windows = []

    async def manage_context(self, request, reason):
        windows.append((reason, request.window))

    plugin = make_plugin(manage_context=manage_context, provide_model=lambda self, spec: model)
    model = FakeModel("done")
    ask(Agent(model="fake:x", plugins=[plugin]), "go")

    assert windows == [("before_model", 1000), ("after_invocation", 1000)]
