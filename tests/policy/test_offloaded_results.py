"""Policies and results that leave the context: what is stored, what stays, and what is read again has passed them."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import ContextOffloader
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk.kits.context.storage import MemoryStorage
from ropewalk_testing import assert_valid_history, use

BIG = "\n".join(f"row {n}" for n in range(5_000))


@pytest.fixture
def storage():
    return MemoryStorage()


async def test_a_policy_sees_the_result_and_then_the_preview_that_is_kept(govern, make_agent, tools, results, storage):
    seen = []

    async def watch(moment, subject, agent):
        if moment == "after_tool_call":
            seen.append(subject["content"][0]["text"])

    govern(watch)
    tools.safe.answer = BIG
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[ContextOffloader(storage)])
    await agent.invoke_async("Go.")

    kept = results(agent)["T1"][1]
    assert seen == [BIG, kept]
    assert kept.startswith("[Offloaded")


async def test_what_a_policy_takes_out_is_neither_kept_nor_stored(govern, make_agent, tools, results, storage):
    async def mask(moment, subject, agent):
        if moment == "after_tool_call":
            text = subject["content"][0]["text"]
            if "row 7\n" in text:
                return Replace({**subject, "content": [{"text": text.replace("row 7\n", "")}]})

        return None

    govern(mask)
    tools.safe.answer = BIG
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[ContextOffloader(storage)])
    await agent.invoke_async("Go.")

    (reference,) = await storage.list()
    data = await storage.read(reference)
    assert b"row 6\\nrow 8\\n" in data
    assert "row 6\nrow 8\n" in results(agent)["T1"][1]


async def test_what_a_policy_withholds_is_not_stored(govern, make_agent, tools, results, storage):
    async def withhold(moment, subject, agent):
        return Refuse("confidential") if moment == "after_tool_call" else None

    govern(withhold)
    tools.safe.answer = BIG
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[ContextOffloader(storage)])
    await agent.invoke_async("Go.")

    assert results(agent) == {"T1": ("error", "DENIED: confidential")}
    assert await storage.list() == []


async def test_what_is_read_from_the_storage_passes_the_policy_again(govern, make_agent, tools, results, storage):
    async def no_row(moment, subject, agent):
        found = moment == "after_tool_call" and subject["content"][0]["text"].startswith("4322: row 4321")
        return Refuse("not this one") if found else None

    govern(no_row)
    tools.safe.answer = BIG
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[ContextOffloader(storage)])
    await agent.invoke_async("Go.")
    (reference,) = await storage.list()
    read = {"reference": reference, "pattern": "row 4321$", "context_lines": 0}
    again = make_agent(use("retrieve_offloaded_content", read, id="T2"), "done", plugins=[ContextOffloader(storage)])
    await again.invoke_async("Go.")

    assert results(again) == {"T2": ("error", "DENIED: not this one")}
    assert_valid_history(again.messages)


def test_a_policy_that_denies_the_retrieval_tool_is_obeyed(govern, make_agent, results, storage):
    async def no_reading(moment, subject, agent):
        named = moment == "before_tool_call" and subject.tool_use["name"] == "retrieve_offloaded_content"
        return Refuse("no") if named else None

    govern(no_reading)
    asyncio.run(storage.write("off_" + "0" * 20, b'{"content": [{"text": "secret"}]}'))
    turn = use("retrieve_offloaded_content", {"reference": "off_" + "0" * 20}, id="T1")
    agent = make_agent(turn, "done", plugins=[ContextOffloader(storage)])
    agent("Go.")
    assert results(agent) == {"T1": ("error", "DENIED: no")}
