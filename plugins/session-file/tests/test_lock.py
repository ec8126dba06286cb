from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ropewalk.kits.sessions import SessionConflictError
from ropewalk_session_file.lock import take

HOLD = """
import sys
from pathlib import Path
from ropewalk_session_file.lock import take
lease = take(Path(sys.argv[1]), lambda: "it")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@pytest.fixture
def holder(path):
    """Another process that holds the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_lease_in_the_same_process_is_a_conflict(path):
    lease = take(path, lambda: "it")
    with pytest.raises(SessionConflictError, match="it is in use by another agent"):
        take(path, lambda: "it")

    lease.release()
    lease.release()
    take(path, lambda: "it").release()


def test_a_lease_of_another_process_counts_until_it_dies(path, holder):
    with pytest.raises(SessionConflictError):
        take(path, lambda: "it")

    holder.send_signal(signal.SIGKILL)
    holder.wait()
    take(path, lambda: "it").release()


def test_a_lease_that_nobody_has_any_more_is_free(path):
    take(path, lambda: "it")
    take(path, lambda: "it").release()


def test_a_lock_file_that_was_removed_is_made_anew(path):
    old = take(path, lambda: "it")
    path.unlink()
    new = take(path, lambda: "it")

    with pytest.raises(SessionConflictError):
        take(path, lambda: "it")

    old.release()
    new.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_a_lease(path):
    lease = take(path, lambda: "it")
    read, write = os.pipe()
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, b"x")
        os.read(read, 1)
        os._exit(0)

    try:
        os.read(ready, 1)
        lease.release()
        take(path, lambda: "it").release()
    finally:
        os.write(write, b"x")
        os.waitpid(child, 0)
        for each in (read, write, ready, tell):
            os.close(each)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_lets_a_lease_go_closes_nothing_of_its_own(path):
    lease = take(path, lambda: "it")
    child = os.fork()
    if child == 0:
        mine = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]  # one of them gets the number of the lock's file
        lease.release()
        closed = 0
        for each in mine:
            try:
                os.fstat(each)
            except OSError:
                closed = 1

        os._exit(closed)

    assert os.waitpid(child, 0)[1] == 0
    lease.release()


def test_a_link_in_the_place_of_the_lock_is_not_followed(path, tmp_path):
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        take(path, lambda: "it")

    assert not (tmp_path / "elsewhere").exists()
