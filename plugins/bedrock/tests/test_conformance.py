"""Bedrock, streamed and whole, held to what every model keeps."""

from __future__ import annotations

import pytest

from ropewalk_testing import ModelConformance
from ropewalk_testing.servers import http_fault

STOPS = ("max_tokens", "stop_sequence", "content_filtered", "guardrail_intervened", "malformed_tool_use")


class TestStreamed(ModelConformance):
    stop_reasons = STOPS
    supports_output_schema = True
    supports_reasoning = True
    supports_redacted_reasoning = True

    @pytest.fixture
    def model_for(self, bedrock):
        return bedrock

    def overflowing(self, message):
        return http_fault(400, "ValidationException", f"{message}: Input is too long for requested model.")


class TestWhole(ModelConformance):
    """Without streaming the answer comes as a stream too, but all at once and each block in one piece."""

    streams = False
    stop_reasons = STOPS
    supports_output_schema = True
    supports_reasoning = True
    supports_redacted_reasoning = True

    @pytest.fixture
    def model_for(self, bedrock):
        return lambda turns: bedrock(turns, streaming=False)

    def overflowing(self, message):
        return http_fault(400, "ValidationException", f"{message}: Input is too long for requested model.")
