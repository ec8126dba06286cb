"""How calls end, and run side by side."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ropewalk_testing.model_conformance.base import Conformance
from ropewalk_testing.model_conformance.rig import SECONDS, RigMaker, ask
from ropewalk_testing.turns import turn


class Ending(Conformance):
    """Tests of cancelling, loops and threads."""

    async def test_closing_the_stream_early_ends_it(self, rig: RigMaker) -> None:
        """Within bounds, at the provider's end too; the next call works."""
        self.needs(self.streams, "answers in pieces")
        made = rig([turn("one two three", deltas=3, stall=True), "next"])
        async with asyncio.timeout(SECONDS):
            stream = made.model.stream(ask())
            async for event in stream:
                if "contentBlockDelta" in event:
                    break

            await stream.aclose()

        await made.closed()
        answer = await made.answer()
        assert answer.text == "next" or not self.scripted

    @pytest.mark.parametrize("silent", [turn(stall=True), turn("half", stall=True)])
    async def test_a_silent_call_can_be_cancelled(self, rig: RigMaker, silent: Any) -> None:
        """Before the first event and in the middle."""
        self.needs(self.scripted, "script")
        made = rig([silent, "next"])
        call = asyncio.create_task(made.play(ask()))
        await made.stalled()
        call.cancel()
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([call])

        assert call.cancelled()
        await made.closed()
        assert (await made.answer()).text == "next"

    async def test_streams_run_side_by_side(self, rig: RigMaker) -> None:
        """Several at once, each whole."""
        texts = [f"answer number {number}" for number in range(5)]
        made = rig([turn(text, deltas=4) for text in texts])
        answers = await asyncio.gather(*(made.answer() for _ in texts))

        if self.scripted:
            assert sorted(answer.text for answer in answers) == texts

    def test_one_model_serves_event_loops_in_a_row(self, rig: RigMaker) -> None:
        """Nothing is kept that belongs to a loop which has ended."""
        texts = ["one", "two", "three"]
        made = rig(texts)
        said = [asyncio.run(made.answer()).text for _ in texts]

        assert said == texts or not self.scripted

    def test_one_model_serves_event_loops_at_once(self, rig: RigMaker) -> None:
        """In threads of their own."""
        texts = ["one", "two", "three"]
        made = rig(texts)
        said: list[str] = []
        threads = [threading.Thread(target=lambda: said.append(asyncio.run(made.answer()).text)) for _ in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)

        assert sorted(said) == sorted(texts) or (len(said) == len(texts) and not self.scripted)
