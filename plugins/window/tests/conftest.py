"""Histories to be trimmed, and agents that keep their changes."""

from __future__ import annotations

import pytest

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Records:
    """Keeps the splices that would be stored."""

    name = "records"

    def __init__(self):
        self.splices = []

    @hookimpl
    async def write_records(self, records):
        self.splices += [record.data for record in records if record.kind == "history_spliced"]


def say(role, text):
    return {"role": role, "content": [{"text": text}]}


@pytest.fixture
def chat():
    """`chat(n)`: n exchanges, q0 a0 q1 a1 ..."""
    return lambda count: [
        message for i in range(count) for message in (say("user", f"q{i}"), say("assistant", f"a{i}"))
    ]


@pytest.fixture
def tool_run():
    """`tool_run(n, size=...)`: a task, n calls with results of `size` characters, an answer."""

    def make(count, size=10, answer=True):
        messages = [say("user", "task")]
        for i in range(count):
            use = {"toolUseId": f"t{i}", "name": "look", "input": {}}
            text = f"r{i} ".ljust(size, "x")
            result = {"toolUseId": f"t{i}", "status": "success", "content": [{"text": text}]}
            messages.append({"role": "assistant", "content": [{"toolUse": use}]})
            messages.append({"role": "user", "content": [{"toolResult": result}]})

        return [*messages, say("assistant", "done")] if answer else messages

    return make


@pytest.fixture
def outline():
    """A history in short: the texts, calls in brackets."""

    def short(messages):
        words = []
        for message in messages:
            for block in message["content"]:
                if "toolUse" in block:
                    words.append(f"[{block['toolUse']['toolUseId']}]")
                elif "toolResult" in block:
                    words.append(block["toolResult"]["content"][0]["text"].split(" ")[0])
                else:
                    words.append(block["text"].split(" ")[0])

        return " ".join(words)

    return short


@pytest.fixture
def records():
    return Records()


@pytest.fixture
def make_agent(records):
    """`make_agent(manager, turns, messages)`: a quiet agent whose splices are in `records`."""

    def make(manager, turns, messages=(), plugins=(), tools=None, **given):
        model = turns if hasattr(turns, "stream") else ScriptedModel(turns, **given)
        agent = Agent(
            model=model,
            messages=list(messages),
            tools=tools,
            callback_handler=None,
            conversation_manager=manager,
            plugins=[records, *plugins],
        )
        return agent, model

    return make
