"""Plugins that add turns, drop them or keep requests leave the history valid (the kind behind conformance 22)."""

from __future__ import annotations

import contextlib
import copy

import pytest
from pydantic import BaseModel

from ropewalk import (
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    Deny,
    InterventionHandler,
    ModelError,
    Proceed,
    hookimpl,
    tool,
)
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.calls.outcomes import Retry
from ropewalk_testing import assert_valid_history, use


def user(said):
    return {"role": "user", "content": [{"text": said}]}


def assistant(said):
    return {"role": "assistant", "content": [{"text": said}]}


@tool
async def ping() -> str:
    """Pings."""
    return "pong"


def test_a_plugin_that_goes_on_adds_a_user_turn(ask, make_agent, shape):
    """Conformance 22 (B)."""

    class GoOn:
        name = "go-on"

        @hookimpl
        async def decide_continue(self, message):
            return [{"text": "shorter"}] if message["content"] == [{"text": "a long answer"}] else None

    agent, model = make_agent(["a long answer", "short"], plugins=[GoOn()])

    result = ask(agent, "go")

    assert str(result) == "short\n"
    assert shape(model.requests[1].messages) == [
        ("user", [{"text": "go"}]),
        ("assistant", [{"text": "a long answer"}]),
        ("user", [{"text": "shorter"}]),
    ]
    assert shape(agent.messages)[:3] == shape(model.requests[1].messages)
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("ending", ["done early", [{"text": "done early"}]], ids=["text", "blocks"])
def test_a_plugin_that_ends_the_turn_after_the_tools_adds_an_answer(ask, make_agent, ending):
    """Conformance 22 (B)."""

    class End:
        name = "end"

        @hookimpl
        async def around_tools(self, batch, call_next):
            outcome = await call_next(batch)
            outcome.end_turn = ending
            return outcome

    agent, model = make_agent([use("ping", {}), "later"], tools=[ping], plugins=[End()])

    result = ask(agent, "go")

    assert (result.stop_reason, str(result), model.calls) == ("end_turn", "done early\n", 1)
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user", "assistant"]
    ask(agent, "again")
    assert_valid_history(model.requests[1].messages)


def test_feedback_of_a_plugin_is_merged_into_the_last_user_turn(ask, make_agent, shape):
    """Conformance 22 (B)."""

    class Guide:
        name = "guide"

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            bad = outcome.message["content"] == [{"text": "bad"}]
            return Retry("rude", feedback=({"text": "be polite"},)) if bad else outcome

    agent, model = make_agent(["bad", "good"], plugins=[Guide()])

    assert str(ask(agent, "go")) == "good\n"
    assert shape(model.requests[1].messages) == [("user", [{"text": "go"}, {"text": "be polite"}])]
    assert shape(agent.messages) == [
        ("user", [{"text": "go"}, {"text": "be polite"}]),
        ("assistant", [{"text": "good"}]),
    ]


def test_edits_of_a_context_plugin_keep_tool_pairs_whole(ask, make_agent):
    """Conformance 22 (B)."""

    class DropOldest:
        name = "drop-oldest"

        @hookimpl
        async def manage_context(self, request, reason):
            if reason != "before_model" or len(request.messages) < 5:
                return None

            return [HistoryEdit(request.ids[0], request.ids[1], (), "too long")]

    turns = [use("ping", {}) for _ in range(6)]
    agent, model = make_agent([*turns, "done", "more"], tools=[ping], plugins=[DropOldest()])

    ask(agent, "go")
    ask(agent, "again")

    for request in model.requests:
        assert_valid_history(request.messages)

    assert max(len(request.messages) for request in model.requests) <= 6


def test_a_kept_request_goes_on_showing_what_was_sent(ask, make_agent, shape):
    """Conformance 22 (B)."""

    class Keep:
        name = "keep"
        requests = ()

        @hookimpl
        async def around_model_call(self, request, call_next):
            self.requests += ((request, copy.deepcopy(shape(request.messages))),)
            return await call_next(request)

    class KeepOne:
        name = "keep-one"

        @hookimpl
        async def manage_context(self, request, reason):
            if reason != "after_invocation" or len(request.messages) < 4:
                return None

            return [HistoryEdit(request.ids[0], request.ids[-2], (), "one is enough")]

    keep = Keep()
    agent, _ = make_agent([use("ping", {}), "a", "b", "c", "d"], tools=[ping], plugins=[keep, KeepOne()])
    for prompt in ("one", "two", "three", "four"):
        ask(agent, prompt)
        agent.messages[-1] = assistant("edited")

    del agent.messages[:]
    assert len(keep.requests) == 5
    for request, sent in keep.requests:
        assert shape(request.messages) == sent


def test_a_request_cannot_be_used_to_edit_the_history(ask, make_agent):
    """Conformance 22 (B)."""

    class Edit:
        name = "edit"

        @hookimpl
        async def around_model_call(self, request, call_next):
            request.messages.append(user("smuggled in"))

    agent, model = make_agent(["never"], plugins=[Edit()])

    with pytest.raises((AttributeError, TypeError)):
        ask(agent, "go")

    assert (model.calls, list(agent.messages)) == (0, [])


# -- invocations that come to nothing ----------------------------------------------------------------------------


class Once(InterventionHandler):
    """Denies the first invocation."""

    name = "once"

    def __init__(self):
        self.denied = 0

    def before_invocation(self, event):
        self.denied += 1
        return Deny("no") if self.denied == 1 else Proceed()


def once(event_type):
    """A callback that cancels the first event of a kind."""
    seen = []

    def cancel(event):
        seen.append(event)
        if len(seen) == 1:
            event.cancel = "no"

    cancel.__annotations__["event"] = event_type
    return cancel


class Answer(BaseModel):
    n: int


@tool
async def leave() -> str:
    """Leaves."""
    raise SystemExit(1)


ENDS = {
    "denied by a callback": lambda: ({"hooks": [once(BeforeInvocationEvent)]}, {}, []),
    "denied by a handler": lambda: ({"interventions": [Once()]}, {}, []),
    "its model call is cancelled": lambda: ({"hooks": [once(BeforeModelCallEvent)]}, {}, []),
    "failed": lambda: ({}, {}, [ModelError("down")]),
    "failed after its tools": lambda: ({}, {}, [use("ping", {}), ModelError("down")]),
    "left by a tool": lambda: ({}, {}, [use("leave", {})]),
    "limited": lambda: ({}, {"limits": {"turns": 1}}, [use("ping", {})]),
    "limited before the output": lambda: (
        {},
        {"limits": {"turns": 1}, "structured_output_model": Answer},
        ["words"],
    ),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("before", [[], [user("one"), assistant("two")]], ids=["first", "later"])
def test_whatever_ends_an_invocation_the_next_prompt_makes_no_second_user_turn(ask, make_agent, end, before):
    """Conformance 22 (B)."""
    parameters, options, turns = end()
    agent, model = make_agent([*turns, "fine"], tools=[ping, leave], messages=list(before), **parameters)
    with contextlib.suppress(ModelError, SystemExit):
        ask(agent, "go", **options)

    assert_valid_history(agent.messages)
    assert str(ask(agent, "again")) == "fine\n"
    assert_valid_history(agent.messages)
    for messages in (agent.messages, model.requests[-1].messages):
        roles = [message["role"] for message in messages]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
        assert {"text": "again"} in messages[-1 if messages is not agent.messages else -2]["content"]
