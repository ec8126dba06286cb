"""The history is always valid, whatever happens in between (the kind behind conformance 22 and 31)."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropewalk import Agent, hookimpl, tool
from ropewalk.errors import HistoryError, ModelError
from ropewalk.kits.calls.invocation import Denied
from ropewalk_testing import ScriptedModel, assert_valid_history, text, turn, use


def user(*blocks):
    return {"role": "user", "content": [{"text": b} if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks):
    return {"role": "assistant", "content": [{"text": b} if isinstance(b, str) else b for b in blocks]}


def answered(tool_use_id, says="x"):
    return {"toolResult": {"toolUseId": tool_use_id, "status": "success", "content": [{"text": says}]}}


@tool
async def ping() -> str:
    """Pings."""
    return "pong"


@tool
async def fail() -> str:
    """Fails."""
    raise RuntimeError("no")


@tool
async def leave() -> str:
    """Leaves."""
    raise SystemExit(3)


# -- a list ------------------------------------------------------------------------------------------------------


def test_the_history_is_a_list_for_json_comparison_and_slices(ask, make_agent):
    """Conformance 1."""
    agent, _ = make_agent(["hi"])
    ask(agent, "hello")

    assert isinstance(agent.messages, list)
    assert agent.messages == json.loads(json.dumps(agent.messages))
    assert agent.messages[-1:] == [agent.messages[1]]
    assert copy.deepcopy(agent.messages) == agent.messages


EDITS = {
    "append": lambda messages: messages.append(user("x")),
    "extend": lambda messages: messages.extend([user("x")]),
    "insert": lambda messages: messages.insert(0, user("x")),
    "pop": lambda messages: messages.pop(),
    "remove": lambda messages: messages.remove(messages[0]),
    "clear": lambda messages: messages.clear(),
    "del": lambda messages: messages.__delitem__(0),
    "assign": lambda messages: messages.__setitem__(0, user("x")),
    "slice": lambda messages: messages.__setitem__(slice(None), []),
    "+=": lambda messages: messages.__iadd__([user("x")]),
    "*=": lambda messages: messages.__imul__(2),
    "reverse": lambda messages: messages.reverse(),
    "sort": lambda messages: messages.sort(key=str),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_no_kind_of_edit_passes_during_a_run(ask, make_agent, edit):
    """Conformance 22 (B)."""
    refused = []

    @tool
    def change() -> str:
        """Edits the history of its own agent."""
        with contextlib.suppress(HistoryError):
            edit(agent.messages)
            return "changed it"

        refused.append(1)
        return "refused"

    agent, _ = make_agent([use("change", {}), "ok"], tools=[change])

    ask(agent, "go")

    assert refused == [1]
    assert [message["role"] for message in agent.messages] == ["user", "assistant", "user", "assistant"]


def test_assigning_the_history_during_a_run_is_refused(ask, make_agent):
    """Conformance 22 (B)."""
    refused = []

    @tool
    def change() -> str:
        """Replaces the history of its own agent."""
        try:
            agent.messages = []
        except HistoryError:
            refused.append(1)

        return "tried"

    agent, _ = make_agent([use("change", {}), "ok"], tools=[change])

    ask(agent, "go")

    assert (refused, len(agent.messages)) == ([1], 4)


# -- what callers bring ------------------------------------------------------------------------------------------

ONE_OPEN = [user("go"), assistant("let me see", use("ping", {}, id="T1"))]
TWO_OPEN = [user("go"), assistant(use("ping", {}, id="T1"), use("ping", {}, id="T2"))]
BROKEN = {
    "open at the end": ONE_OPEN,
    "two open at the end": TWO_OPEN,
    "one of two answered": [*TWO_OPEN, user(answered("T2"))],
    "open in the middle": [*ONE_OPEN, assistant("so"), user("and?"), assistant("well")],
    "open before a text": [*ONE_OPEN, user("never mind")],
    "half answered in the middle": [*TWO_OPEN, user(answered("T1")), assistant("so")],
    "an orphan result": [user("go"), assistant("so"), user(answered("T9")), assistant("well")],
    "an orphan result first": [user(answered("T9")), assistant("well")],
    "a result after a text": [*ONE_OPEN, user("here it is", answered("T1")), assistant("well")],
    "a result given twice": [*ONE_OPEN, user(answered("T1"), answered("T1", "y")), assistant("well")],
    "an id used twice": [*ONE_OPEN, user(answered("T1")), *ONE_OPEN[1:], user(answered("T1")), assistant("well")],
    "the assistant first": [assistant("welcome")],
    "two of the user": [user("one"), user("two"), assistant("well")],
    "two of the assistant": [user("one"), assistant("two"), assistant("three")],
    "only the assistant": [assistant("one"), assistant("two")],
    "an empty answer": [user("go"), assistant(), user("and?"), assistant("")],
}
PROMPTS = {
    "text": "go on",
    "blocks": [{"text": "go on"}],
    "messages": [user("go on")],
    "nothing": None,
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_a_broken_conversation_is_sent_as_a_valid_one(ask, make_agent, messages, prompt):
    """Conformance 22 (B)."""
    before = copy.deepcopy(messages)
    agent, model = make_agent(["ok", "more"], tools=[ping], messages=messages)

    ask(agent, prompt)
    ask(agent, "and then?")

    assert messages == before
    for request in model.requests:
        prefix = request.messages
        assert_valid_history(prefix)
        assert all(message["content"] for message in prefix)

    sent = json.dumps(model.requests[1].messages)
    texts = [block["text"] for message in messages for block in message["content"] if block.get("text")]
    assert all(json.dumps(each) in sent for each in texts)


@pytest.mark.parametrize(
    "prompt", [PROMPTS["text"], PROMPTS["blocks"], PROMPTS["messages"]], ids=["text", "blocks", "messages"]
)
def test_open_tool_uses_are_closed_in_the_message_of_the_next_prompt(ask, make_agent, tool_results, prompt):
    """Conformance 31."""
    agent, model = make_agent(["ok"], tools=[ping], messages=TWO_OPEN)

    ask(agent, prompt)

    (closing,) = [message for message in model.requests[0].messages[2:] if message["role"] == "user"]
    assert [next(iter(block)) for block in closing["content"]] == ["toolResult", "toolResult", "text"]
    assert [(r["toolUseId"], r["status"]) for r in tool_results([closing])] == [("T1", "error"), ("T2", "error")]


@pytest.mark.parametrize(
    "message",
    [
        "text",
        42,
        {},
        {"role": "user"},
        {"role": "robot", "content": []},
        {"role": "user", "content": "text"},
        {"role": "user", "content": ["text"]},
        {"role": "user", "content": [{"nonsense": 1}]},
    ],
    ids=repr,
)
def test_what_is_no_message_is_refused_in_the_constructor(make_agent, message):
    """Conformance 20."""
    with pytest.raises(HistoryError):
        make_agent(["never"], messages=[message])


# -- whatever happens --------------------------------------------------------------------------------------------


class Gate:
    """Denies a call when told to."""

    name = "gate"

    def __init__(self):
        self.closed = False

    @hookimpl
    async def around_invocation(self, invocation, call_next):
        return Denied("closed") if self.closed else await call_next(invocation)


TURNS = {
    "text": "an answer",
    "empty": turn(""),
    "error": ModelError("down"),
    "late error": turn("half", error=ModelError("down")),
    "cut": turn("half", use("ping", {}), cut=True),
    "max": turn("half", use("ping", {}), stop="max_tokens"),
    "filtered": turn("no", stop="content_filtered"),
    "use": [text("let me"), use("ping", {}, id="same")],
    "uses": [use("ping", {}, id="same"), use("fail", {}, id="same"), use("missing", {})],
    "bad arguments": use("ping", "[1"),
    "no name": use("", {}),
    "leave": [use("ping", {}), use("leave", {})],
}
CALLS = {"text", "nothing", "blocks", "pair", "denied", "cancelled"}


@settings(max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    calls=st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=6),
    turns=st.lists(st.sampled_from(sorted(TURNS)), max_size=16),
)
def test_the_history_stays_valid_through_any_run_of_luck(calls, turns):
    """Conformance 22 (B) and 31."""
    model = ScriptedModel([*(TURNS[name] for name in turns), *["the end"] * 6])
    gate = Gate()
    agent = Agent(
        model=model,
        tools=[ping, fail, leave],
        plugins=[gate],
        callback_handler=None,
        retry_strategy=None,
        messages=[user("hello")],
    )
    prompts = {
        "text": "next",
        "nothing": None,
        "blocks": [{"text": "next"}],
        "pair": [user("a"), assistant("b"), user("c")],
    }

    async def run():
        for call in calls:
            gate.closed = call == "denied"
            if call == "cancelled":
                agent.cancel()

            with contextlib.suppress(ModelError, SystemExit):
                await agent.invoke_async(prompts.get(call, "next"))

            assert_valid_history(agent.messages)

    asyncio.run(run())
    for request in model.requests:
        assert_valid_history(request.messages)
