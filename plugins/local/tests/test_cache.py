from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ropewalk_local.cache import is_noted, locked, models_folder, verify
from ropewalk_local.errors import DownloadInterruptedError


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"ROPEWALK_CACHE": "/a"}, "/a/models"),
        ({"ROPEWALK_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a/models"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/ropewalk/models"),
    ],
)
def test_the_cache_folder_follows_the_environment(monkeypatch, variables, folder):
    for name in ("ROPEWALK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert models_folder() == Path(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has a cache folder of its own")
def test_the_cache_folder_is_in_the_home_folder_otherwise(monkeypatch):
    for name in ("ROPEWALK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    assert models_folder() == Path.home() / ".cache" / "ropewalk" / "models"


ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_counts_as_verified_only_with_the_pinned_hash(tmp_path):
    path = tmp_path / "file"
    assert not verify(path, ABC)

    path.write_bytes(b"abd")
    assert not verify(path, ABC)

    path.write_bytes(b"abc")
    assert verify(path, ABC)
    assert is_noted(path, ABC)
    assert not is_noted(path, "0" * 64)


def test_a_changed_file_is_verified_no_more(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert verify(path, ABC)

    path.write_bytes(b"abcd")

    assert not is_noted(path, ABC)
    assert not verify(path, ABC)


@pytest.mark.parametrize("note", ["", "[]", "{}", "null", '{"size": 3}'])
def test_a_damaged_note_counts_as_none(tmp_path, note):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    (tmp_path / "file.verified.json").write_text(note)

    assert not is_noted(path, ABC)


HOLDER = """
import sys
from pathlib import Path
from ropewalk_local.cache import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_waits_for_the_lock_and_gets_it_when_the_holder_is_killed(tmp_path):
    path = tmp_path / "file"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline().strip() == b"held"
        asked = []
        with pytest.raises(DownloadInterruptedError), locked(path, lambda: len(asked) == 2 or asked.append(1)):
            pass

        holder.kill()
        holder.wait()
        with locked(path):
            entered = True

    assert entered


def test_threads_hold_the_lock_one_after_the_other(tmp_path):
    inside, most = 0, 0
    turn = threading.Lock()

    def work():
        nonlocal inside, most
        with locked(tmp_path / "file"):
            with turn:
                inside += 1
                most = max(most, inside)

            threading.Event().wait(0.02)
            with turn:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join(30)

    assert most == 1
