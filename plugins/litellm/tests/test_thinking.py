from __future__ import annotations

import pytest

from ropewalk_litellm.thinking import redacted_bytes, redacted_text


@pytest.mark.parametrize("data", ["AQ==", "Af8C", "", "no base64!", "AQ", "AR==", "Grüße", "bGl0ZWxsbS10ZXh0Og=="])
def test_redacted_thinking_goes_back_as_it_came(data):
    assert redacted_text(redacted_bytes(data)) == data


def test_redacted_thinking_is_the_bytes_that_its_text_stands_for():
    assert redacted_bytes("Af8C") == b"\x01\xff\x02"
