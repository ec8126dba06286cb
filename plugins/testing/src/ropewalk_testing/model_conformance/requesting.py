"""What a model is given."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import copy
import inspect
import json
from typing import Any

import pytest

from ropewalk.model import ModelRequest
from ropewalk_testing.model_conformance.base import Conformance
from ropewalk_testing.model_conformance.rig import PICK, RICH, RigMaker, ask
from ropewalk_testing.turns import use


class Requesting(Conformance):
    """Tests of requests."""

    async def test_a_conversation_with_tools_is_sent_whole(self, rig: RigMaker) -> None:
        """Texts, tool uses, results and the tools on offer."""
        made = rig(["I see."])
        await made.answer(ModelRequest(messages=RICH, tool_specs=(PICK,)))

        sent = made.sent()
        for word in ("I pick.", "T1", "T2", "picked red", "missing", "Picks a colour.", "enum"):
            assert word in sent, f"{word!r} was not sent: {sent}"

    async def test_a_history_of_tools_may_be_sent_without_tools(self, rig: RigMaker) -> None:
        """As a summary of it is asked for."""
        made = rig(["I see."])
        await made.answer(ModelRequest(messages=RICH))

        assert "picked red" in made.sent()

    async def test_the_system_prompt_is_sent(self, rig: RigMaker) -> None:
        """All of its blocks."""
        self.needs(self.supports_system, "system prompts")
        made = rig(["Yes."])
        await made.answer(ask(system=({"text": "Be polite."}, {"text": "Be brief."})))

        sent = made.sent()
        assert "Be polite." in sent
        assert "Be brief." in sent

    @pytest.mark.parametrize("choice", [{"auto": {}}, {"any": {}}, {"tool": {"name": "pick"}}])
    async def test_the_choice_of_tools_is_sent(self, rig: RigMaker, choice: dict[str, Any]) -> None:
        """Any of the three; the model obeys or the provider hears of it."""
        self.needs(self.supports_tool_choice, "choice of tools")
        made = rig([use("pick", {"colour": "red"})])
        answer = await made.answer(ask("Pick a colour.", tool_specs=(PICK,), tool_choice=choice))

        assert "auto" in choice or len(answer.of("toolUse")) == 1
        if self.scripted:
            assert "tool_choice" in made.sent().replace("toolChoice", "tool_choice")

    async def test_an_output_schema_is_held(self, rig: RigMaker) -> None:
        """The answer's text is JSON of that form."""
        self.needs(self.supports_output_schema, "output schemas")
        made = rig(['{"colour": "red"}'])
        answer = await made.answer(ask("Pick red or green.", output_schema=PICK["inputSchema"]["json"]))

        assert json.loads(answer.text)["colour"] in ("red", "green")
        if self.scripted:
            assert "colour" in made.sent()

    async def test_a_request_is_not_written_to(self, rig: RigMaker) -> None:
        """Not even deep inside."""
        request = ModelRequest(
            messages=copy.deepcopy(list(RICH)),
            system=({"text": "Be brief."},),
            tool_specs=(copy.deepcopy(PICK),),
            invocation_state={"mine": 1},
        )
        before = copy.deepcopy(request)
        await rig(["I see."]).answer(request)

        assert request == before

    async def test_tokens_are_counted_if_it_can(self, rig: RigMaker) -> None:
        """A number above 0, or None for "cannot"."""
        count = getattr(rig(["unused"]).model, "count_tokens", None)
        if count is None:
            pytest.skip("the model does not count tokens")

        counted = count(ask())
        counted = await counted if inspect.isawaitable(counted) else counted
        assert counted is None or (type(counted) is int and counted > 0)
