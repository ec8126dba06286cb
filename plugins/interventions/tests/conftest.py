"""Agents without other plugins, a tool that notes its inputs, and handlers made of functions."""

from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_interventions import InterventionHandler, Proceed
from ropewalk_testing import ScriptedModel, use


class Probe:
    """A tool that notes with which arguments it ran."""

    def __init__(self, name, answer="ran"):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": f"Does {name}.", "inputSchema": {"json": {"type": "object"}}}
        self.answer = answer
        self.ran = []

    async def invoke(self, call):
        self.ran.append(call.tool_use["input"])
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": self.answer}]}


@pytest.fixture
def danger():
    return Probe("danger")


@pytest.fixture
def safe():
    return Probe("safe")


@pytest.fixture
def make_agent(danger, safe):
    """`make_agent(handler, ..., turns=[...])` with the tools danger and safe."""

    def make(*handlers, turns=None, **parameters):
        script = [use("danger", {"path": "x"}, id="A"), "done"] if turns is None else turns
        model = script if hasattr(script, "stream") else ScriptedModel(script)
        return Agent(
            model=model,
            **{"tools": [danger, safe], "callback_handler": None, "interventions": list(handlers), **parameters},
        )

    return make


@pytest.fixture
def handler():
    """`handler("name", moment=function_of_event, on_error=...)`: methods stand in the class, as they must."""

    def make(name="h", **body):
        methods = {
            key: staticmethod(value) if callable(value) else value for key, value in body.items() if key != "asked"
        }
        return type("Handler", (InterventionHandler,), {"name": name, **methods})()

    return make


@pytest.fixture
def noting(handler):
    """A handler that notes the events of one moment and proceeds: `noting(list, "before_tool_call")`."""

    def make(seen, *moments, name="noting", action=None):
        def note(event):
            seen.append(event)
            return action or Proceed()

        return handler(name, **dict.fromkeys(moments, note))

    return make


@pytest.fixture
def outcome():
    """(status, text) of every tool result in an agent's history, by tool-use id."""

    def find(agent):
        blocks = [b["toolResult"] for message in agent.messages for b in message["content"] if "toolResult" in b]
        return {block["toolUseId"]: (block["status"], block["content"][0]["text"]) for block in blocks}

    return find


@pytest.fixture
def answer():
    """The prompt that answers the interrupts of a result: `answer(result, "y", "n")`, in their order."""

    def make(result, *responses):
        return [
            {"interruptResponse": {"interruptId": each.id, "response": response}}
            for each, response in zip(result.interrupts, responses, strict=False)
        ]

    return make
