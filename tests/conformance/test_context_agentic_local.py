"""A real model manages its context."""

from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_testing import assert_valid_history

pytestmark = pytest.mark.model

TALK = [
    {"role": "user", "content": [{"text": "The ferry leaves at 9:40 from pier 3. Remember that."}]},
    {"role": "assistant", "content": [{"text": "The ferry leaves at 9:40 from pier 3."}]},
    *(
        {"role": role, "content": [{"text": text}]}
        for number in range(1, 9)
        for role, text in (
            ("user", f"What is {number} plus {number}?"),
            ("assistant", f"{number} plus {number} is {2 * number}."),
        )
    ),
]


def test_the_local_model_makes_room_when_it_is_asked_to():
    agent = Agent(
        "local:qwen2.5-coder-1.5b",
        messages=TALK,
        system_prompt="You manage your own memory with tools. When you are asked to make room, call a tool for it.",
        callback_handler=None,
        context_manager="agentic",
    )

    agent("Make room in your memory: call the tool truncate_context with keep_recent 4.", limits={"turns": 1})

    called = [
        block["toolUse"]["name"] for message in agent.messages for block in message["content"] if "toolUse" in block
    ]
    assert set(called) & {"truncate_context", "summarize_context"}
    assert len(agent.messages) < len(TALK)
    assert_valid_history(agent.messages)
