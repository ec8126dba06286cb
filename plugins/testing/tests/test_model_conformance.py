"""The scripted model, held to what every model keeps."""

from __future__ import annotations

import asyncio
import inspect
import json

import pytest

from ropewalk.errors import ContextWindowOverflowException, ModelError, ModelThrottledException
from ropewalk_testing import ModelConformance, ScriptedModel, turn
from ropewalk_testing.model_conformance import rig


class TestScriptedModel(ModelConformance):
    stop_reasons = ("max_tokens", "stop_sequence", "content_filtered", "guardrail_intervened")
    supports_output_schema = True
    supports_reasoning = True
    supports_redacted_reasoning = True

    def model_for(self, turns):
        model = ScriptedModel(turns, context_window=1000, count_tokens=7)
        return model, model

    def refused(self, message):
        return ModelError(message)

    def throttled(self, message):
        return ModelThrottledException(message)

    def overflowing(self, message):
        return ContextWindowOverflowException(message)

    def broken(self, message):
        return turn("half", error=ModelError(message))

    async def test_the_choice_of_tools_is_sent(self, rig):
        """Requests are recorded as they are; see test_scripted."""


# -- the tests can fail --------------------------------------------------------------------------------------------


class Faulty(ScriptedModel):
    """A model with one fault; each subclass says what it does to a stream."""

    async def stream(self, request):
        async for event in super().stream(request):
            for each in self.spoil(event, request):
                yield each

    def spoil(self, event, request):
        return [event]


class DropsEnds(Faulty):
    def spoil(self, event, request):
        return [] if "messageStop" in event else [event]


class CountsNothing(Faulty):
    def spoil(self, event, request):
        return [] if "metadata" in event else [event]


class MergesTools(Faulty):
    def spoil(self, event, request):
        body = next(iter(event.values()))
        return [{key: {**body, "contentBlockIndex": 0} if "contentBlockIndex" in body else body for key in event}]


class LosesSignatures(Faulty):
    def spoil(self, event, request):
        return [] if "signature" in str(event) else [event]


class WritesToRequests(Faulty):
    def spoil(self, event, request):
        request.messages[0]["content"].append({"cachePoint": {"type": "default"}})
        return [event]


class SaysAlwaysTheEnd(Faulty):
    def spoil(self, event, request):
        return [{"messageStop": {"stopReason": "end_turn"}} if "messageStop" in event else event]


class Ascii(Faulty):
    def spoil(self, event, request):
        return json.loads(json.dumps([event], ensure_ascii=False).encode("ascii", "replace"))


class FinishesCutStreams(ScriptedModel):
    async def stream(self, request):
        stopped = False
        async for event in super().stream(request):
            stopped = stopped or "messageStop" in event
            yield event

        if not stopped:
            yield {"messageStop": {"stopReason": "end_turn"}}


class RaisesRawErrors(ScriptedModel):
    async def stream(self, request):
        try:
            async for event in super().stream(request):
                yield event
        except ModelError as error:
            raise RuntimeError(str(error)) from error


class BelongsToALoop(ScriptedModel):
    loop = None

    async def stream(self, request):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")

        async for event in super().stream(request):
            yield event


class StaysOpen(ScriptedModel):
    active = 1


@pytest.mark.parametrize(
    ("model", "test"),
    [
        (DropsEnds, "test_a_text_is_streamed_in_pieces"),
        (CountsNothing, "test_an_answer_tells_its_usage"),
        (MergesTools, "test_two_tool_uses_stay_apart"),
        (LosesSignatures, "test_reasoning_goes_back_with_its_signature"),
        (WritesToRequests, "test_a_request_is_not_written_to"),
        (SaysAlwaysTheEnd, "test_stop_reasons_are_told"),
        (SaysAlwaysTheEnd, "test_a_tool_use_streams_its_arguments"),
        (Ascii, "test_any_text_passes_unharmed"),
        (FinishesCutStreams, "test_a_cut_line_is_no_end"),
        (RaisesRawErrors, "test_a_refused_call_is_a_model_error"),
        (RaisesRawErrors, "test_a_throttled_call_says_so"),
        (RaisesRawErrors, "test_a_request_that_is_too_long_says_so"),
        (RaisesRawErrors, "test_a_failure_within_the_answer_is_a_model_error"),
        (BelongsToALoop, "test_one_model_serves_event_loops_in_a_row"),
        (StaysOpen, "test_closing_the_stream_early_ends_it"),
    ],
)
def test_a_faulty_model_fails(model, test, monkeypatch):
    monkeypatch.setattr(rig, "POLLS", 3)
    case = TestScriptedModel()

    def make(turns):
        made = model(turns)
        return rig.Rig((made, made))

    run = getattr(case, test)
    options = {"interleave": True} if "interleave" in inspect.signature(run).parameters else {}

    async def outcome():
        await run(make, **options)

    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        asyncio.run(outcome()) if inspect.iscoroutinefunction(run) else run(make)
