"""How a model fails, and that agents work with it."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

from typing import Any

import pytest

from ropewalk import Agent
from ropewalk.errors import ContextWindowOverflowException, ModelError, ModelThrottledException
from ropewalk.kits.hooks import discovery
from ropewalk_testing.answers import answer_of
from ropewalk_testing.contract import Echo
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.model_conformance.base import Conformance
from ropewalk_testing.model_conformance.rig import RigMaker, ask
from ropewalk_testing.servers.wire import json_bytes
from ropewalk_testing.turns import turn, use


class Failing(Conformance):
    """Tests of errors."""

    async def test_a_refused_call_is_a_model_error(self, rig: RigMaker) -> None:
        """It keeps the provider's words, is not to be repeated, and the next call works."""
        self.needs(self.scripted, "script")
        made = rig([self.refused("no such thing as plaid"), "next"])
        with pytest.raises(ModelError, match="no such thing as plaid") as caught:
            await made.play(ask())

        assert not caught.value.retryable
        assert (await made.answer()).text == "next"

    async def test_a_throttled_call_says_so(self, rig: RigMaker) -> None:
        """So that it is repeated."""
        self.needs(self.scripted, "script")
        with pytest.raises(ModelThrottledException, match="slow down please") as caught:
            await rig([self.throttled("slow down please")]).play(ask())

        assert caught.value.retryable

    async def test_a_request_that_is_too_long_says_so(self, rig: RigMaker) -> None:
        """So that the conversation is shortened."""
        self.needs(self.scripted, "script")
        text = "prompt is too long: 203470 tokens > 200000 maximum"
        with pytest.raises(ContextWindowOverflowException, match="203470 tokens"):
            await rig([self.overflowing(text)]).play(ask())

    async def test_a_failure_within_the_answer_is_a_model_error(self, rig: RigMaker) -> None:
        """After what was said before it."""
        self.needs(self.scripted and self.streams, "answers in pieces")
        made = rig([self.broken("the model tripped"), "next"])
        seen: list[Any] = []
        with pytest.raises(ModelError, match="the model tripped"):  # noqa: PT012 - the loop is one statement
            async for event in made.model.stream(ask()):
                seen.append(event)  # noqa: PERF401 - what was seen before the error counts

        assert answer_of(seen, complete=False).text == "half"
        assert (await made.answer()).text == "next"

    async def test_a_cut_line_is_no_end(self, rig: RigMaker) -> None:
        """An error that may be repeated, or a stream without `messageStop`; never a finished answer."""
        self.needs(self.scripted, "script")
        made = rig([turn("half", cut=True), "next"])
        seen: list[Any] = []
        try:
            async for event in made.model.stream(ask()):
                seen.append(event)  # noqa: PERF401 - what was seen before the error counts
        except ModelError as error:
            assert error.retryable  # noqa: PT017 - that no error comes is right as well

        assert answer_of(seen, complete=False).stop is None
        assert (await made.answer()).text == "next"

    def test_an_agent_runs_tools_with_it(self, rig: RigMaker, no_plugins_env: pytest.MonkeyPatch) -> None:  # noqa: ARG002
        """Several calls, and a history that a provider takes."""
        self.needs(self.scripted, "script")
        discovery.refresh()
        made = rig([["I ask.", use("echo", {"value": "echoed words"})], "The end.", "Again."])
        agent = Agent(model=made.model, tools=[Echo()])

        assert str(agent("Go.")) == "The end.\n"
        assert "echoed words" in json_bytes(agent.messages[2]).decode()
        assert str(agent("Go on.")) == "Again.\n"
        assert_valid_history(agent.messages)
        assert "echoed words" in made.sent()
