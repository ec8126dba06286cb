"""Agents that manage their context."""

from __future__ import annotations

from typing import Final

import pytest

from ropewalk import Agent
from ropewalk_context_agentic import ContextAgenticPlugin
from ropewalk_testing import ScriptedModel


class Look:
    """A tool with a long answer."""

    tool_name = "look"
    tool_spec: Final = {"name": "look", "description": "Looks.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        number = call.tool_use["input"].get("at", 0)
        text = "\n".join(f"{number}: line {i}" for i in range(100))
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


@pytest.fixture
def chat():
    """`chat(n)` is n messages, of the user and the assistant in turn, of about 50 tokens each."""

    def make(count):
        return [
            {"role": "user" if i % 2 == 0 else "assistant", "content": [{"text": f"message {i} " + "word " * 40}]}
            for i in range(count)
        ]

    return make


@pytest.fixture
def agent_of():
    """`agent_of(script, messages, window=..., **options)` gives an agent and its model."""

    def make(script, messages=None, window=None, plugins=(), **options):
        model = ScriptedModel(script, context_window=window)
        plugin = ContextAgenticPlugin(ContextAgenticPlugin.Config(**options))
        agent = Agent(
            model=model,
            messages=messages,
            tools=[Look()],
            callback_handler=None,
            retry_strategy=None,
            plugins=[plugin, *plugins],
        )
        return agent, model

    return make


@pytest.fixture
def results():
    """The texts of all tool results in a list of messages."""

    def collect(messages):
        return [
            piece["text"]
            for message in messages
            for block in message["content"]
            if "toolResult" in block
            for piece in block["toolResult"]["content"]
        ]

    return collect
