"""The lease of a log: a lock that the operating system takes back when the process ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final
from weakref import WeakSet

from ropewalk.kits.sessions import SessionConflictError
from ropewalk_session_file.files import opened

_ATTEMPTS: Final = 100

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLease:
    """A lock on a file beside the log, which is never replaced. It holds for one descriptor, not for the process."""

    __slots__ = ("__weakref__", "_descriptor")

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        _locked.add(self)

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """As the protocol says."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _locked.discard(self)
            os.close(descriptor)


_locked: Final[WeakSet[FileLease]] = WeakSet()


def take(path: Path, whose: Callable[[], str]) -> FileLease:
    """Takes the lock.

    Args:
        path: The lock's file; its folder is there.
        whose: Names the log for errors.

    Raises:
        SessionConflictError: Somebody has it.
        OSError: The file cannot be opened.
    """
    for _ in range(_ATTEMPTS):
        descriptor = opened(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(descriptor)
            there = _is_at(descriptor, path)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            raise SessionConflictError(
                f"{whose()} is in use by another agent, in this process or another: wait until its run has ended"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise

        if there:
            return FileLease(descriptor)

        os.close(descriptor)  # the session was deleted between the two steps

    raise SessionConflictError(f"{whose()} is deleted again and again while a run wants it: leave it to one of the two")


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _close_all() -> None:
    """A forked child has the descriptors too, and would keep the locks when its parent dies.

    The leases are the child's as well: they must not close the numbers again, which will be of other files by then.
    """
    for lease in list(_locked):
        with contextlib.suppress(OSError):
            lease.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
