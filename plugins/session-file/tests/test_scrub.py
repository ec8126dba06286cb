from __future__ import annotations

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import SessionException
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


async def test_what_was_set_aside_is_erased_before_the_log_is(store, key, log, monkeypatch):
    """A process that ends between the two leaves a log that still says what is to be erased, and not the other way."""
    await store.append(key, [appended("secret")], 0)
    with log.open("ab") as file:
        file.write(b"torn: secret")

    await store.append(key, [appended("more", 1)], store.read(key).position)
    end, aside = store.read(key).position, log.parent / "set-aside-1.jsonl"
    assert b"secret" in aside.read_bytes()

    def end_here(*_):
        raise OSError(5, "the process ends here")

    monkeypatch.setattr("ropewalk_session_file.writing.replace_with", end_here)
    with pytest.raises(SessionException, match="ends here"):
        await store.replace(key, [appended("", erased=True), appended("more", 1)], end)

    monkeypatch.undo()
    assert b"secret" not in aside.read_bytes()
    assert store.read(key).position == end
    await store.replace(key, [appended("", erased=True), appended("more", 1)], end)
    assert all(b"secret" not in path.read_bytes() for path in log.parent.iterdir())
