"""Runs that are taken up again take the same steps, and nothing from outside but through the seam (scenario A28)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ropewalk import Agent, hookimpl, tool
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record
from ropewalk_testing import ScriptedModel, assert_valid_history, use

SCRIPT = """
import asyncio, json, os, random, time
from ropewalk import Agent, ToolContext, hookimpl, tool
from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_testing import ScriptedModel, use


class Fixed(Seam):
    count = 0

    def time(self):
        return 0.0

    monotonic = staticmethod(lambda: 0.0)

    def new_id(self, prefix):
        Fixed.count += 1
        return f"{prefix}{Fixed.count:016x}"


class Kept:
    name = "kept"

    @hookimpl
    async def write_records(self, records):
        kept.extend(record.to_dict() for record in records)


@tool(effect="pure")
async def look(word: str) -> str:
    return word.upper()


@tool(context=True)
async def pay(amount: int, tool_context: ToolContext) -> str:
    return f"paid {amount}: {tool_context.interrupt('sure?')}"


def forbidden(*_, **__):
    raise AssertionError("the run looked at the environment, the clock or chance")


class Closed(dict):
    __getitem__ = get = __contains__ = __iter__ = keys = items = forbidden


kept = []
model = ScriptedModel([[use("look", {"word": "tea"}), use("pay", {"amount": 7})], use("look", {"word": "x"}), "done"])


async def main():
    agent = Agent(model=model, tools=[look, pay], plugins=[Kept()], callback_handler=None)
    assert agent.tool_registry.specs  # schemas are made once, by a library that looks around when it is loaded
    os.environ = Closed()
    time.time = os.urandom = random.random = forbidden
    first = await agent.invoke_async("go")
    answers = [{"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in first.interrupts]
    await agent.invoke_async(answers)


with use_seam(Fixed()):
    asyncio.run(main())

print(json.dumps(kept))
"""


def test_another_process_with_cold_caches_takes_the_same_steps_and_looks_at_nothing_outside():
    """The environment, the clock and chance are closed while the runs go on."""
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.returncode == 0, done.stderr
        outputs.append(json.loads(done.stdout))

    assert outputs[0] == outputs[1]
    kinds = [record["kind"] for record in outputs[0]]
    assert kinds.count("tool_ended") == 3
    assert kinds.count("run_suspended") == kinds.count("run_resumed") == 1


class Kept:
    """Keeps the log; an agent that is built with a part of it goes on where that ends."""

    name = "kept"

    def __init__(self, records=()):
        self.records = list(records)

    @hookimpl
    def read_records(self):
        return fold(LogState(), self.records) if self.records else None

    @hookimpl
    async def write_records(self, records):
        self.records += [Record.from_dict(json.loads(record.to_json())) for record in records]


async def test_taken_up_after_any_step_a_run_does_each_side_effect_once():
    paid = []

    @tool(effect="idempotent")
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    turns = [[use("pay", {"amount": 1}, id="A"), use("pay", {"amount": 2}, id="B")], use("pay", {"amount": 3}, id="C")]

    def made(kept):
        def answer(request):
            done = sum("toolResult" in block for message in request.messages for block in message["content"])
            return {0: turns[0], 2: turns[1]}.get(done, "done")

        return Agent(model=ScriptedModel(answer), tools=[pay], plugins=[kept], callback_handler=None)

    whole = Kept()
    first = made(whole)
    await first.invoke_async("go")
    assert paid == [1, 2, 3]

    begun = next(i for i, record in enumerate(whole.records) if record.kind == "message_appended") + 1
    for length in range(begun, len(whole.records) + 1):
        kept = Kept(whole.records[:length])
        ended = {record.data["id"] for record in kept.records if record.kind == "tool_ended"}
        paid.clear()
        agent = made(kept)
        if agent.suspension is not None:
            await agent.invoke_async(None)

        assert agent.messages == first.messages
        assert sorted(paid) == [amount for amount, use_id in ((1, "A"), (2, "B"), (3, "C")) if use_id not in ended]
        assert_valid_history(agent.messages)


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan")], ids=["object", "set", "nan"])
def test_state_that_cannot_be_written_is_a_final_error_of_its_tool_and_is_not_tried_again(value, ask, make_agent):
    calls = []

    @tool(context=True)
    async def remember(tool_context) -> str:
        """Remembers."""
        calls.append(1)
        tool_context.agent.state.set("kept", value)
        return "kept"

    agent, _ = make_agent([use("remember", {}, id="T"), "done"], tools=[remember])

    assert str(ask(agent, "go")) == "done\n"
    result = agent.messages[2]["content"][0]["toolResult"]
    assert (len(calls), result["status"]) == (1, "error")
    assert "is not JSON" in result["content"][0]["text"]
    assert "kept" not in agent.state
