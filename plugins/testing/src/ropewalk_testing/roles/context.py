"""What every conversation manager keeps."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from ropewalk.errors import ContextWindowOverflowException
from ropewalk.kits.context import GivenManager, is_pinned, pinned_as
from ropewalk.model import ModelRequest
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.roles.common import Probe, Role, make_agent, run, within
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.turns import use

TURNS = 30
ENOUGH = 500


class ContextConformance(Role):
    """Tests that a conversation manager passes. A subclass named `Test...` has `manager()`.

    A manager is a plugin with `manage_context`, or an object with `apply_management` and `reduce_context`.

    Attributes:
        reduces: Whether it makes room when the model says that a request is too long; False for one that never does.
        keeps_pins: Whether pinned messages stay.
        keeps_task: Whether the first message of the user stays.
        undoes: Whether the conversation is as it was when all that it tried came to nothing.
    """

    reduces: ClassVar[bool] = True
    keeps_pins: ClassVar[bool] = True
    keeps_task: ClassVar[bool] = False
    undoes: ClassVar[bool] = True

    def manager(self) -> Any:
        """Makes the manager; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a method manager() that makes the one under test")

    def summary(self, request: ModelRequest) -> Any:  # noqa: ARG002 - for those who override it
        """What the model answers when the manager asks it something (a summary, say)."""
        return "They have talked of many things."

    async def test_a_long_conversation_stays_valid(self) -> None:
        """With tool turns, after each call of the agent, and in each request."""
        model = _Model(self.summary, most=None)
        agent = self.agent(model)
        for number in range(TURNS):
            assert str(await run(agent, f"Question {number}.")) == "done\n"

        for request in model.turns:
            assert_valid_history(list(request.messages))

    async def test_the_newest_message_is_sent(self) -> None:
        """However long the conversation."""
        model = _Model(self.summary, most=None)
        agent = self.agent(model)
        for number in range(TURNS):
            await run(agent, f"Question {number}.")
            assert any(f"Question {number}." in str(request.messages) for request in model.turns[-2:])

    async def test_it_makes_room(self) -> None:
        """When the model says that the request is too long, as often as need be; the run goes on."""
        self.needs(self.reduces, "way to make room")
        most = 12
        model = _Model(self.summary, most)
        agent = self.agent(model)
        for number in range(TURNS):
            assert str(await run(agent, f"Question {number}.")) == "done\n"

        assert any(len(request.messages) > most for request in model.turns), "the model was never sent too much"
        assert len(agent.messages) < 4 * TURNS

    async def test_the_task_stays(self) -> None:
        """The first message of the user is in every request."""
        self.needs(self.keeps_task, "care for the first message")
        model = _Model(self.summary, 12)
        agent = self.agent(model)
        for number in range(TURNS):
            await run(agent, "The task." if number == 0 else f"Question {number}.")

        assert all("The task." in str(request.messages) for request in model.turns)

    async def test_pinned_messages_stay(self) -> None:
        """Wherever they stand."""
        self.needs(self.reduces and self.keeps_pins, "care for pins")
        model = _Model(self.summary, 16)
        agent = self.agent(model)
        for number in range(TURNS):
            await run(agent, f"Question {number}.")
            if number == 1:
                place = next(i for i, m in enumerate(agent.messages) if "Question 1." in str(m))
                agent.messages[place] = pinned_as(agent.messages[place])

        assert [str(m) for m in agent.messages if is_pinned(m) and "Question 1." in str(m)] != []
        assert "Question 1." in str(model.turns[-1].messages)

    async def test_what_never_fits_is_an_error(self) -> None:
        """After a bounded number of attempts, and the conversation of before goes on."""
        model = _Model(self.summary, None)
        agent = self.agent(model)
        for number in range(3):
            await run(agent, f"Question {number}.")

        model.most, calls = 0, model.calls
        with pytest.raises(ContextWindowOverflowException):
            await within(agent.invoke_async("One too many."))

        assert model.calls - calls < ENOUGH
        assert_valid_history(list(agent.history.view()))
        model.most = None
        assert str(await run(agent, "And now?")) == "done\n"
        assert "Question 2." in str(model.turns[-1].messages) or not self.undoes, (
            "what it dropped for a request that failed all the same is gone: say so with undoes = False, or keep it"
        )

    async def test_one_manager_serves_two_agents(self) -> None:
        """Neither sees anything of the other's conversation."""
        manager = self.manager()
        models = [_Model(self.summary, 12 if self.reduces else None) for _ in range(2)]
        agents = [self.agent(model, manager) for model in models]
        for number in range(TURNS):
            await asyncio.gather(*[run(agent, f"{word} {number}.") for agent, word in zip(agents, "AB", strict=True)])

        for agent, model, other in zip(agents, models, "BA", strict=True):
            assert f"{other} 29." not in str(agent.messages) + str(model.turns[-1].messages)

    # -- their parts -----------------------------------------------------------------------------------------------

    def agent(self, model: Any, manager: Any = None) -> Any:
        """An agent that uses a tool in each turn, with the manager."""
        chosen = manager or self.manager()
        plugin = chosen if hasattr(chosen, "manage_context") else GivenManager(chosen)
        return make_agent(model, tools=[Probe("probe")], plugins=[plugin])

    def needs(self, able: bool, what: str) -> None:
        """Leaves the test out if the manager is not able to do something."""
        if not able or (what != "care for the first message" and not self.reduces):
            pytest.skip(f"the manager has no {what}")


class _Model:
    """Asks for a tool, then answers; says that a request is too long when it has more messages than `most`."""

    def __init__(self, summary: Callable[[ModelRequest], Any], most: int | None) -> None:
        self.most = most
        self.turns: list[ModelRequest] = []
        self._summary = summary
        self._model = ScriptedModel(self._turn)
        self.calls = 0

    def stream(self, request: ModelRequest) -> Any:
        """Streams the next turn."""
        return self._model.stream(request)

    def _turn(self, request: ModelRequest) -> Any:
        self.calls += 1
        if request.purpose != "turn" or not request.tool_specs:
            return self._summary(request)

        self.turns.append(request)
        if self.most is not None and len(request.messages) > self.most:
            return ContextWindowOverflowException(f"{len(request.messages)} messages > {self.most}")

        answered = any("toolResult" in block for block in request.messages[-1]["content"])
        return "done" if answered else use("probe", {}, id=f"T{self.calls}")
