from __future__ import annotations

import pytest

from ropewalk_testing.model_conformance import ModelConformance


class TestStreaming(ModelConformance):
    stop_reasons = ("max_tokens", "content_filtered")
    supports_output_schema = True
    supports_reasoning = True
    supports_redacted_reasoning = True

    @pytest.fixture
    def model_for(self, served):
        return served


class TestWhole(ModelConformance):
    """Answers that come in one piece: what is said of pieces does not hold."""

    test_a_failure_within_the_answer_is_a_model_error = None
    test_a_text_is_streamed_in_pieces = None
    test_a_tool_use_streams_its_arguments = None
    test_closing_the_stream_early_ends_it = None

    stop_reasons = ("max_tokens", "content_filtered")
    supports_output_schema = True
    supports_reasoning = True
    supports_redacted_reasoning = True

    @pytest.fixture
    def model_for(self, served):
        return lambda turns: served(turns, stream=False)
