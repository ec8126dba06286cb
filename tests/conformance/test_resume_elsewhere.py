"""Paused runs that another process goes on with, from JSON only.

Each kind of pause is an entry in `KINDS`. This process pauses one agent of each; a second process, which is this file
run as a program, builds the agents anew, loads their snapshots and goes on with all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from ropewalk import (
    Agent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    Confirm,
    InterventionHandler,
    Proceed,
    ToolContext,
    Transform,
    tool,
)
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use


@dataclass
class Kind:
    """One kind of pause.

    Attributes:
        build: Makes the agent; what its tools do is appended to the list.
        before: What the tools have done when the agent is paused.
        after: What they do in the other process.
        resume: The prompt that goes on, from the result of the paused call.
    """

    build: Callable[[list[Any]], Agent]
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    resume: Callable[[Any], Any] = lambda result: [
        {"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in result.interrupts
    ]


def agent_of(*uses, name="top", **parameters):
    """An agent that asks for the tools, and then is done. Its model counts on the conversation, not on its calls."""

    def model(request):
        return f"{name} is done" if "toolResult" in request.messages[-1]["content"][0] else list(uses)

    return Agent(name=name, model=ScriptedModel(model), callback_handler=None, **parameters)


def tools_for(done):
    @tool
    def plain(of: str) -> str:
        """Works."""
        done.append(of)
        return of

    @tool(context=True)
    def asking(of: str, tool_context: ToolContext) -> str:
        """Asks, then works."""
        answer = tool_context.interrupt("approve", {"of": of})
        done.append(f"{of}: {answer}")
        return f"{of}: {answer}"

    return [plain, asking]


def in_a_tool(done):
    uses = use("plain", {"of": "sibling"}, id="T1"), use("asking", {"of": "a"}, id="T2")
    return agent_of(*uses, tools=tools_for(done))


def before_a_tool_call(done):
    def approve(event: BeforeToolCallEvent):
        if event.tool_use["input"]["of"] != "sibling":
            done.append(event.interrupt("approve"))

    uses = use("plain", {"of": "sibling"}, id="T1"), use("plain", {"of": "a"}, id="T2")
    return agent_of(*uses, tools=tools_for(done), hooks=[approve])


def before_tools(done):
    def approve(event: BeforeToolsEvent):
        done.append(event.interrupt("approve", b"\x00bytes"))

    return agent_of(use("plain", {"of": "a"}, id="T1"), tools=tools_for(done), hooks=[approve])


def in_a_handler(done):
    class Guard(InterventionHandler):
        name = "guard"

        def before_tool_call(self, event):
            of = event.tool_use["input"]["of"]
            return Proceed() if of == "sibling" else Confirm(f"run {of}?", evaluate=lambda response: response == "yes")

        def after_tool_call(self, event):
            return Transform(lambda event: done.append(event.result["status"]))

    uses = use("plain", {"of": "sibling"}, id="T1"), use("plain", {"of": "a"}, id="T2")
    return agent_of(*uses, tools=tools_for(done), interventions=[Guard()])


def in_a_sub_agent_of_a_sub_agent(done):
    uses = use("plain", {"of": "sibling"}, id="L1"), use("asking", {"of": "a"}, id="L2")
    low = agent_of(*uses, name="low", tools=tools_for(done))
    middle = agent_of(use("low", {"input": "go"}, id="M1"), name="middle", tools=[low])
    return agent_of(use("middle", {"input": "go"}, id="T1"), tools=[middle])


def in_a_sub_agent_that_keeps_its_conversation(done):
    low = agent_of(use("asking", {"of": "a"}, id="L1"), name="low", tools=tools_for(done))
    return agent_of(use("low", {"input": "go"}, id="T1"), tools=[low.as_tool(preserve_context=True)])


KINDS: dict[str, Kind] = {
    "tool": Kind(in_a_tool, before=["sibling"], after=["a: yes"]),
    "before_tool_call": Kind(before_a_tool_call, before=["sibling"], after=["yes", "a"]),
    "before_tools": Kind(before_tools, after=["yes", "a"]),
    "intervention": Kind(in_a_handler, before=["sibling", "success"], after=["a", "success"]),
    "sub-agents": Kind(in_a_sub_agent_of_a_sub_agent, before=["sibling"], after=["a: yes"]),
    "kept sub-agent": Kind(in_a_sub_agent_that_keeps_its_conversation, after=["a: yes"]),
}


@pytest.fixture(scope="module")
def elsewhere():
    """What the tools did here until each kind was paused, and what came of each in the other process."""
    paused, here = {}, {}
    for name, kind in KINDS.items():
        here[name] = []
        agent = kind.build(here[name])
        result = agent("go")
        snapshot = agent.take_snapshot(preset="session").to_dict()
        paused[name] = {"snapshot": snapshot, "prompt": kind.resume(result), "stop": result.stop_reason}

    there = subprocess.run(
        [sys.executable, __file__], input=json.dumps(paused), capture_output=True, text=True, timeout=120, check=False
    )
    assert there.returncode == 0, there.stderr
    return paused, here, json.loads(there.stdout)


def main():
    """Goes on with the paused runs on standard input."""
    outcomes = {}
    for name, paused in json.load(sys.stdin).items():
        done: list[Any] = []
        agent = KINDS[name].build(done)
        agent.load_snapshot(Snapshot.from_dict(paused["snapshot"]))
        result = agent(paused["prompt"])
        assert_valid_history(agent.messages)
        outcomes[name] = {"stop": result.stop_reason, "text": str(result), "done": done, "calls": agent.model.calls}

    sys.stdout.write(json.dumps(outcomes))


@pytest.mark.parametrize("name", KINDS)
def test_another_process_goes_on_with_a_paused_run(elsewhere, name):
    paused, here, there = elsewhere
    kind = KINDS[name]

    assert (paused[name]["stop"] != "end_turn", here[name]) == (True, kind.before)
    assert there[name] == {"stop": "end_turn", "text": "top is done\n", "done": kind.after, "calls": 1}


if __name__ == "__main__":
    main()
