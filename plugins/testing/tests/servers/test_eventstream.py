"""The framing of event streams."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk_testing import ScriptError
from ropewalk_testing.servers import error_frame, event_frame, exception_frame, frame, frames


def test_frames_match_the_published_ones():
    assert frame({}, b"") == bytes.fromhex("000000100000000005c248eb7d98c8ff")
    assert frame({}, b"{'foo':'bar'}") == bytes.fromhex("0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936")


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=200)), st.binary(max_size=500))
def test_what_was_framed_can_be_read(headers, payload):
    whole = frame(headers, payload)

    assert list(frames(whole * 2)) == [(headers, payload)] * 2


@pytest.mark.parametrize("place", [0, 3, 9, 14, -6, -1])
def test_a_changed_byte_is_seen(place):
    damaged = bytearray(event_frame("messageStart", {"role": "assistant"}))
    damaged[place] ^= 1

    with pytest.raises(ScriptError, match=r"checksum|torn"):
        list(frames(bytes(damaged)))


@pytest.mark.parametrize("kept", [1, 15, 40])
def test_a_torn_stream_is_seen(kept):
    with pytest.raises(ScriptError, match="torn"):
        list(frames(event_frame("messageStart", {"role": "assistant"})[:kept]))


def test_the_three_kinds_of_messages():
    stream = event_frame("a", {"b": b"\x01"}) + exception_frame("throttlingException", "slow") + error_frame("x", "y")
    (one, payload), (two, text), (three, nothing) = frames(stream)

    assert (one[":message-type"], one[":event-type"], json.loads(payload)) == ("event", "a", {"b": "AQ=="})
    assert (two[":message-type"], two[":exception-type"]) == ("exception", "throttlingException")
    assert json.loads(text) == {"message": "slow"}
    assert (three, nothing) == ({":message-type": "error", ":error-code": "x", ":error-message": "y"}, b"")
