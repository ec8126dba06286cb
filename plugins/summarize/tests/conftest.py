"""Agents that summarize."""

from __future__ import annotations

from typing import Final

import pytest

from ropewalk import Agent
from ropewalk_summarize import SummarizingConversationManager
from ropewalk_testing import ScriptedModel


class Look:
    """A tool with an answer of some length."""

    tool_name = "look"
    tool_spec: Final = {"name": "look", "description": "Looks.", "inputSchema": {"json": {"type": "object"}}}

    def __init__(self, answer="seen"):
        self.answer = answer

    async def invoke(self, call):
        text = [{"text": self.answer}]
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": text}


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
    """`agent_of(script, messages, tool_answer=..., window=..., **manager)` gives an agent and its model."""

    def make(script, messages=None, tool_answer="seen", window=None, **options):
        model = ScriptedModel(script, context_window=window)
        manager = SummarizingConversationManager(**options)
        agent = Agent(
            model=model,
            messages=messages,
            tools=[Look(tool_answer)],
            callback_handler=None,
            retry_strategy=None,
            conversation_manager=manager,
        )
        return agent, model

    return make
