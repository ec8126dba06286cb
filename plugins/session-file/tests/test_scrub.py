from __future__ import annotations

import pytest

from ropewalk import Record
from ropewalk_session_file.scrub import erased_texts, scrub


def appended(text, number=0, **more):
    message = {"role": "user", "content": [{"text": text}] if text else []}
    return Record("r", number, "message_appended", {"id": number, "message": message, **more}, 1.0)


def test_erased_texts_are_those_that_are_gone():
    old = [appended("secret"), appended("kept", 1)]
    new = [appended("", erased=True), appended("kept", 1), appended("new", 2)]
    assert erased_texts(old, new) == {"secret", "text"}
    assert erased_texts(new, new) == set()


@pytest.mark.parametrize("bad", [b'{"torn": "sec', b"\xff\xfe", b""])
def test_lines_with_them_and_lines_that_cannot_be_read_are_taken_out(tmp_path, bad):
    path = tmp_path / "set-aside-1.jsonl"
    path.write_bytes(b'{"a": "fine"}\n{"b": ["has a secr\\u0065t in it"]}\n' + bad)
    scrub([path], {"secret"})
    assert path.read_bytes() == b'{"a": "fine"}\n'
