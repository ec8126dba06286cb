"""What comes back from a model."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import json
from typing import Any

import pytest

from ropewalk.model import Model, ModelRequest
from ropewalk_testing.answers import answer_of
from ropewalk_testing.model_conformance.base import Conformance
from ropewalk_testing.model_conformance.rig import ODD_TEXT, PICK, RigMaker, ask
from ropewalk_testing.turns import reasoning, turn, use


class Answering(Conformance):
    """Tests of answers."""

    async def test_it_is_a_model(self, rig: RigMaker) -> None:
        """It has `stream`; the window, if it tells one, is a number of tokens."""
        model = rig(["unused"]).model
        window = getattr(model, "context_window", None)

        assert isinstance(model, Model)
        assert window is None or (type(window) is int and window > 0)

    async def test_a_text_is_streamed_in_pieces(self, rig: RigMaker) -> None:
        """The whole stream has the form of `StreamEvent`, `messageStop` and metadata at its end."""
        events = await rig([turn("Hello, how are you?", deltas=5)]).play(ask())
        answer = answer_of(events)

        assert not self.streams or sum("contentBlockDelta" in event for event in events) > 1
        assert [block.kind for block in answer.blocks.values()] == ["text"]
        if self.scripted:
            assert (answer.text, answer.stop) == ("Hello, how are you?", "end_turn")

    async def test_an_answer_tells_its_usage(self, rig: RigMaker) -> None:
        """The provider's own numbers, of this call alone."""
        made = rig([turn("one", usage=(7, 3)), turn("two", usage=(11, 2))])
        usages = [(await made.answer()).usage or {} for _ in range(2)]

        assert all(usage["totalTokens"] >= usage["inputTokens"] + usage["outputTokens"] > 0 for usage in usages)
        if self.scripted:
            counted = [(usage["inputTokens"], usage["outputTokens"], usage["totalTokens"]) for usage in usages]
            assert counted == [(7, 3, 10), (11, 2, 13)]

    async def test_a_tool_use_streams_its_arguments(self, rig: RigMaker) -> None:
        """Name and id come first, the arguments are JSON."""
        self.needs(self.scripted or self.supports_tool_choice, "way to make it use a tool")
        choice: dict[str, Any] | None = {"any": {}} if self.supports_tool_choice else None
        made = rig([turn("I pick.", use("pick", {"colour": "red"}, id="T1"), deltas=4)])
        answer = await made.answer(ask("Pick a colour.", tool_specs=(PICK,), tool_choice=choice))
        (used,) = answer.of("toolUse")

        assert answer.stop == "tool_use"
        assert used.use["name"] == "pick"
        assert json.loads(used.text)["colour"] in ("red", "green")
        if self.scripted:
            assert (answer.text, used.use["toolUseId"], used.text) == ("I pick.", "T1", '{"colour": "red"}')
            assert len(used.pieces) > 1 or not self.streams

    @pytest.mark.parametrize("interleave", [False, True])
    async def test_two_tool_uses_stay_apart(self, rig: RigMaker, interleave: bool) -> None:
        """Block after block, and with their pieces mixed."""
        self.needs(self.scripted, "script")
        self.needs(self.supports_interleaving or not interleave, "interleaved tool uses")
        asked = [use("add", {"a": 1, "b": 2}, id="A"), use("mul", {"a": 3, "b": 4}, id="B")]
        answer = await rig([turn(*asked, deltas=3, interleave=interleave)]).answer()

        uses = [(each.use["toolUseId"], each.use["name"], json.loads(each.text)) for each in answer.of("toolUse")]
        assert uses == [("A", "add", {"a": 1, "b": 2}), ("B", "mul", {"a": 3, "b": 4})]

    @pytest.mark.parametrize("given", ["", {}])
    async def test_a_tool_use_may_have_no_arguments(self, rig: RigMaker, given: Any) -> None:
        """Nothing at all, or an empty object."""
        self.needs(self.scripted, "script")
        answer = await rig([use("now", given, id="T1")]).answer()
        (used,) = answer.of("toolUse")

        assert used.text.strip() in ("", "{}")
        assert (used.use["name"], answer.stop) == ("now", "tool_use")

    async def test_any_text_passes_unharmed(self, rig: RigMaker) -> None:
        """Out in a request, back in a text and in arguments, cut anywhere."""
        made = rig([turn(ODD_TEXT, use("pick", {"colour": ODD_TEXT}), deltas=9)])
        answer = await made.answer(ask(ODD_TEXT))

        if self.scripted:
            assert answer.text == ODD_TEXT
            assert json.loads(answer.of("toolUse")[0].text) == {"colour": ODD_TEXT}
            assert json.dumps(ODD_TEXT, ensure_ascii=False)[1:-1] in made.sent()

    async def test_stop_reasons_are_told(self, rig: RigMaker) -> None:
        """Those in `stop_reasons`; one that nobody knows passes or is mapped, but is a text."""
        self.needs(self.scripted, "script")
        made = rig([turn("cut", stop=stop) for stop in (*self.stop_reasons, "some_new_reason")])
        stops = [(await made.answer()).stop for _ in range(len(self.stop_reasons) + 1)]

        assert tuple(stops[:-1]) == self.stop_reasons

    async def test_reasoning_goes_back_with_its_signature(self, rig: RigMaker) -> None:
        """Each block keeps its own, and a second request carries both."""
        self.needs(self.scripted and self.supports_reasoning, "reasoning")
        made = rig([turn(reasoning("I think", "c2lnbmF0dXJl"), "so", deltas=3), "done"])
        answer = await made.answer()
        (thought,) = answer.of("reasoning")
        assert (thought.text, thought.signature, answer.text) == ("I think", "c2lnbmF0dXJl", "so")

        again: list[Any] = [*ask().messages, {"role": "assistant", "content": answer.content}, *ask("And?").messages]
        await made.answer(ModelRequest(messages=again))
        assert "I think" in made.sent()
        assert "c2lnbmF0dXJl" in made.sent()

    async def test_redacted_reasoning_goes_back_as_it_came(self, rig: RigMaker) -> None:
        """The same bytes."""
        self.needs(self.scripted and self.supports_redacted_reasoning, "redacted reasoning")
        made = rig([[{"reasoningContent": {"redactedContent": b"\x01\xff\x02"}}, "so"], "done"])
        answer = await made.answer()
        assert [block.redacted for block in answer.of("reasoning")] == [b"\x01\xff\x02"]

        again: list[Any] = [*ask().messages, {"role": "assistant", "content": answer.content}, *ask("And?").messages]
        await made.answer(ModelRequest(messages=again))
        assert "Af8C" in made.sent()
