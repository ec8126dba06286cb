"""An agent that is built from the log is the one that wrote it."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from ropewalk import Agent
from ropewalk.kits.sessions import LogStore, SessionConflictError, SessionException, SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk_testing.crash.driving import drive
from ropewalk_testing.crash.effects import EffectJournal
from ropewalk_testing.crash.scenario import Scenario
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.store_conformance.base import Conformance

SESSION = "restored"


def facts(agent: Agent) -> dict[str, Any]:
    """What of an agent a log must give back."""
    return {
        "messages": list(agent.messages),
        "ids": agent.history.ids,
        "states": {name: values for name, state in agent.states().items() if (values := state.get())},
        "suspension": agent.suspension.to_dict() if agent.suspension is not None else None,
    }


class Restoring(Conformance):
    """Tests with agents."""

    @pytest.mark.parametrize(
        "retention",
        [None, Retention(keep_last=1), Retention(compact_to_latest=True)],
        ids=["all", "keep_last", "compact_to_latest"],
    )
    async def test_an_agent_is_restored_as_it_was(self, store: LogStore, tmp_path: Path, retention: Any) -> None:
        """After runs with tools, state, state of plugins, questions, a checkpoint, a retry and edits of the history."""
        scenario = Scenario(retention=retention)
        agent = self._scripted(store, scenario, tmp_path)
        await drive(agent, scenario, [])
        again = self._scripted(self.reopened(store), scenario, tmp_path)

        assert facts(again) == facts(agent)
        assert_valid_history(again.messages)

    async def test_a_paused_run_goes_on_in_another_agent(self, store: LogStore, tmp_path: Path) -> None:
        """Each pause of a run is taken up by a new agent; it ends as in one agent."""
        scenario = Scenario(once=False)
        whole = self._scripted(None, scenario, tmp_path)
        await drive(whole, scenario, [])

        prompts: list[Any] = list(scenario.prompts)
        resumed = 0
        while prompts:
            agent = self._scripted(self.reopened(store), scenario, tmp_path)
            await agent.invoke_async(prompts.pop(0))
            pause = agent.suspension
            again = self._scripted(self.reopened(store), scenario, tmp_path)
            assert facts(again) == facts(agent)
            if pause is not None:
                resumed += 1
                answers = [{"interruptResponse": {"interruptId": i.id, "response": True}} for i in pause.interrupts]
                prompts.insert(0, answers or {"checkpointResume": {"checkpoint": pause.checkpoint}})

        assert resumed == 3  # noqa: PLR2004 - two checkpoints and a question
        assert list(again.messages) == list(whole.messages)

    async def test_edits_between_runs_are_restored(self, store: LogStore) -> None:
        """Messages that the caller takes out or puts in, and state that it sets."""
        agent = self._plain(store, "one", "two", "three")
        await agent.invoke_async("1")
        await agent.invoke_async("2")
        del agent.messages[0:2]
        agent.state.set("seen", {"n": [1, None]})
        await agent.invoke_async("3")
        agent.state.delete("seen")
        again = self._plain(self.reopened(store))

        assert [message["content"][0]["text"] for message in again.messages] == ["2", "two", "3", "three"]
        assert again.state.get() == {"seen": {"n": [1, None]}}, "changes since the last run are not written yet"

    async def test_the_second_of_two_writers_is_told(self, store: LogStore) -> None:
        """Two agents of one session: one goes on, the other gets a conflict, and what it said is not in the log."""
        x, y = self._plain(store, "to x", "to x again"), self._plain(self.reopened(store), "to y")
        await x.invoke_async("from x")
        with pytest.raises(SessionConflictError):
            await y.invoke_async("from y")

        await x.invoke_async("x again")
        again = self._plain(self.reopened(store))
        assert [message["content"][0]["text"] for message in again.messages] == [
            "from x", "to x", "x again", "to x again",
        ]  # fmt: skip
        await again.aclose()

    @pytest.mark.parametrize("what", ["append", "replace"])
    async def test_a_write_whose_answer_was_lost_is_found_out(
        self, store: LogStore, monkeypatch: pytest.MonkeyPatch, what: str
    ) -> None:
        """It was stored and an error came back, as when a connection ends in the middle: nobody else has written."""
        manager = SessionManager(SESSION, store, Retention(compact_to_latest=True))
        agent = Agent(ScriptedModel(["1", "2", "3", "4"]), session_manager=manager, callback_handler=None)
        await agent.invoke_async("first")
        write, lost = getattr(store, what), []

        async def lose(*given: Any) -> int:
            end: int = await write(*given)
            lost.append(end)
            if len(lost) > 1:
                return end

            raise SessionException("the connection was lost")

        monkeypatch.setattr(store, what, lose, raising=False)
        with contextlib.suppress(SessionException):
            await agent.invoke_async("second")

        monkeypatch.undo()
        assert lost
        await agent.invoke_async("third")
        await agent.invoke_async("fourth")

        again = self._plain(self.reopened(store))
        assert again.messages == agent.messages
        assert again.suspension is None
        assert_valid_history(again.messages)

    async def test_agents_of_a_session_are_told_apart(self, store: LogStore) -> None:
        """Each has its own log."""
        first, second = self._plain(store, "one", name="first"), self._plain(store, "two", name="second")
        await first.invoke_async("1")
        await second.invoke_async("2")

        for name, text in (("first", "1"), ("second", "2")):
            again = self._plain(self.reopened(store), name=name)
            assert again.messages[0]["content"] == [{"text": text}]

    # -- their parts -----------------------------------------------------------------------------------------------

    @staticmethod
    def _plain(store: LogStore, *script: Any, name: str = "default") -> Agent:
        manager = SessionManager(SESSION, store)
        return Agent(ScriptedModel(script), agent_id=name, session_manager=manager, callback_handler=None)

    @staticmethod
    def _scripted(store: LogStore | None, scenario: Scenario, folder: Path) -> Agent:
        manager = SessionManager(SESSION, store, scenario.retention) if store is not None else None
        return scenario.agent(manager, EffectJournal(folder / "effects"))
