"""Agents whose tools give large results."""

from __future__ import annotations

import json
import re

import pytest

from ropewalk import Agent
from ropewalk_testing import ScriptedModel


class Giving:
    """A tool that gives what it was made with."""

    tool_name = "look"
    tool_spec = {"name": "look", "description": "Looks.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012
    effect = "pure"

    def __init__(self, content, status="success"):
        self.content, self.status = content, status

    async def invoke(self, call):
        content = self.content(call) if callable(self.content) else self.content
        content = [{"text": content}] if isinstance(content, str) else content
        return {"toolUseId": call.tool_use["toolUseId"], "status": self.status, "content": content}


@pytest.fixture
def giving():
    """`giving(content)`: the tool `look`, which gives a text, or pieces, or what a function of the call gives."""
    return Giving


@pytest.fixture
def make_agent():
    """`make_agent(turns, offloader, *tools)`: a quiet agent."""

    def make(turns, offloader, *tools, **given):
        model = turns if hasattr(turns, "stream") else ScriptedModel(turns)
        plugins = [offloader, *given.pop("plugins", ())]
        return Agent(model=model, tools=list(tools), plugins=plugins, callback_handler=None, **given)

    return make


@pytest.fixture
def results():
    """The tool results in an agent's messages, in order."""
    return lambda agent: [
        block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block
    ]


@pytest.fixture
def reference():
    """The reference in a result."""

    def find(result):
        found = re.search(r"off_[0-9a-f]{20}", json.dumps(result))
        return found and found.group()

    return find
