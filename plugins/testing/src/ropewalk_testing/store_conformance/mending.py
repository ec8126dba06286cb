"""What is damaged, newer, erased or unwritable."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from ropewalk import Agent, Record
from ropewalk.kits.log.records import SCHEMA_VERSION
from ropewalk.kits.sessions import LogStore, SessionException, SessionManager
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.store_conformance.base import KEY, Conformance, note, notes
from ropewalk_testing.turns import turn, use

CANARY = "CANARY-ostrich-\u00e9\u00e8"
REDACTED = "[redacted]"


class Mending(Conformance):
    """Tests of torn writes, later versions, erasure and failing writes."""

    async def test_a_torn_write_leaves_the_good_beginning(self, store: LogStore) -> None:
        """Which is told, and can be gone on from; what was written before stays."""
        end = await store.append(KEY, notes(3), 0)
        await store.append(KEY, notes(4, 3), end)
        self.tear(store, KEY)

        other = self.reopened(store)
        found = other.read(KEY)
        assert found is not None
        assert found.report
        kept = len(found.records)
        assert 3 <= kept < 7  # noqa: PLR2004 - of the writes above
        assert found.records == notes(kept)

        await other.append(KEY, notes(2, kept, "run_2"), found.position)
        assert self.records(store) == [*notes(kept), *notes(2, kept, "run_2")]
        again = self.reopened(store).read(KEY)
        assert again is not None
        assert again.position == self.end(other)

    async def test_a_torn_first_write_leaves_an_empty_log(self, store: LogStore) -> None:
        """It begins anew."""
        await store.append(KEY, notes(1), 0)
        self.tear(store, KEY)
        other = self.reopened(store)
        found = other.read(KEY)
        assert found is None or not found.records

        await other.append(KEY, notes(2, run="run_2"), 0 if found is None else found.position)
        assert self.records(store) == notes(2, run="run_2")

    async def test_a_torn_log_can_be_replaced(self, store: LogStore) -> None:
        """By a compaction, from the good beginning on."""
        end = await store.append(KEY, notes(3), 0)
        await store.append(KEY, notes(1, 3), end)
        self.tear(store, KEY)
        other = self.reopened(store)
        await other.replace(KEY, notes(1, run="folded"), self.end(other))

        assert self.records(store) == notes(1, run="folded")

    async def test_a_log_of_a_newer_version_is_refused(self, store: LogStore) -> None:
        """Wherever it begins to be newer; it is no damage, and it stays as it is."""
        newer = Record("run_1", 2, "once", {"key": "k", "value": 1}, 1.0, (), SCHEMA_VERSION + 1)
        await store.append(KEY, [*notes(2), newer, note(3)], 0)
        for _ in range(2):
            with pytest.raises(SessionException, match="version"):
                self.reopened(store).read(KEY)

        with pytest.raises(SessionException):
            Agent(ScriptedModel([]), session_manager=SessionManager(KEY.session_id, store), agent_id=KEY.agent_id)

        assert [info.key for info in store.logs()] == [KEY]

    async def test_a_failed_write_leaves_nothing(self, store: LogStore) -> None:
        """It is a SessionException; afterwards the same write goes to the same place."""
        end = await store.append(KEY, notes(2), 0)
        with self.broken(store):
            with pytest.raises(SessionException):
                await store.append(KEY, notes(3, 2), end)

            with pytest.raises(SessionException):
                await store.replace(KEY, notes(1, run="folded"), end)

        assert self.records(store) == notes(2)
        await store.append(KEY, notes(3, 2), end)
        assert self.records(store) == notes(5)

    async def test_a_replacement_leaves_nothing_of_what_was(self, store: LogStore) -> None:
        """No byte of it, in no log."""
        end = await store.append(KEY, [note(0, text="plain-canary"), *notes(2, 1)], 0)
        assert b"plain-canary" in self.raw(store)
        end = await store.replace(KEY, notes(3), end)

        assert b"plain-canary" not in self.raw(store)
        assert end == self.end(store)
        await store.append(KEY, notes(1, 3), end)
        assert self.records(store) == notes(4)

    @pytest.mark.parametrize("of_a_tool", [False, True], ids=["prompt", "tool_result"])
    async def test_what_a_guardrail_redacts_is_nowhere(self, store: LogStore, of_a_tool: bool) -> None:
        """Neither the prompt nor a tool's result; the log still adds up to the agent."""
        redacting = turn(
            raw=[
                {"messageStart": {"role": "assistant"}},
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "no"}}},
                {"contentBlockStop": {"contentBlockIndex": 0}},
                {"messageStop": {"stopReason": "guardrail_intervened"}},
                {"redactContent": {"redactUserContentMessage": REDACTED}},
            ]
        )
        script = [use("tell", {}, id="T1"), redacting, "fine"] if of_a_tool else [redacting, "fine"]
        agent = self._agent(store, script)
        await agent.invoke_async("Tell me." if of_a_tool else CANARY)
        await agent.invoke_async("And now?")

        raw = self.raw(store)
        assert REDACTED.encode() in raw
        assert CANARY.split("-")[1].encode() not in raw
        again = self._agent(self.reopened(store), [])
        assert again.messages == agent.messages
        assert_valid_history(again.messages)

    @staticmethod
    def _agent(store: LogStore, script: Any) -> Agent:
        return Agent(
            ScriptedModel(script),
            tools=[_Tell()],
            session_manager=SessionManager(KEY.session_id, store),
            callback_handler=None,
        )


class _Tell:
    """A tool that tells what must not be kept."""

    tool_name = "tell"
    tool_spec: ClassVar[Any] = {"name": "tell", "description": "Tells", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call: Any) -> Any:
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": CANARY}]}
