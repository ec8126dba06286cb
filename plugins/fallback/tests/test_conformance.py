"""The model that consists of several, held to what every model keeps."""

from __future__ import annotations

from ropewalk.errors import ContextWindowOverflowException, ModelError, ModelThrottledException
from ropewalk_fallback import FallbackModel
from ropewalk_testing import ModelConformance, ScriptedModel, turn


class TestFallbackModel(ModelConformance):
    stop_reasons = ("max_tokens", "stop_sequence", "content_filtered", "guardrail_intervened")
    supports_output_schema = True
    supports_reasoning = True
    supports_redacted_reasoning = True

    def model_for(self, turns):
        def away(request):
            raise ConnectionError("this one is never there")

        behind = ScriptedModel(turns, context_window=1000, count_tokens=7)
        return FallbackModel([ScriptedModel(away, context_window=1000, count_tokens=7), behind]), behind

    def refused(self, message):
        return ModelError(message)

    def throttled(self, message):
        return ModelThrottledException(message)

    def overflowing(self, message):
        return ContextWindowOverflowException(message)

    def broken(self, message):
        return turn("half", error=ModelError(message))

    test_the_choice_of_tools_is_sent = None  # it looks at a server; requests are handed on as they are
