"""Leases beside a SQLite file: one byte of a lock file for each log. The operating system frees a dead process's."""

from __future__ import annotations

import os
import threading
from typing import Final

try:
    import fcntl
except ImportError:  # Windows: leases hold within the process, and positions fence between processes
    fcntl = None  # type: ignore[assignment]


class _LockFile:
    """What this process holds in one lock file. POSIX drops all locks of a process with the first close: one handle."""

    __slots__ = ("handle", "held")

    def __init__(self) -> None:
        self.handle: int | None = None
        self.held: set[int] = set()


_files: Final[dict[str, _LockFile]] = {}
_guard = threading.Lock()


def take(path: str, number: int, *, shared_file: bool) -> bool:
    """Takes a lock; False when somebody has it, in this process or another.

    Args:
        path: Names the locks; the lock file, when there is one.
        number: Which lock, less than 2 ** 62.
        shared_file: Whether other processes may open the same file.

    Raises:
        OSError: The file cannot be opened or locked.
    """
    with _guard:
        file = _files.setdefault(path, _LockFile())
        if number in file.held:
            return False

        try:
            if shared_file and fcntl is not None and not _lock(file, path, number):
                return False

            file.held.add(number)
            return True
        finally:
            _close_idle(path, file)


def free(path: str, number: int) -> None:
    """Gives a lock up; none is no error."""
    with _guard:
        file = _files.get(path)
        if file is None or number not in file.held:
            return

        file.held.remove(number)
        if file.handle is not None and file.held:
            fcntl.lockf(file.handle, fcntl.LOCK_UN, 1, number)

        _close_idle(path, file)


def _lock(file: _LockFile, path: str, number: int) -> bool:
    if file.handle is None:
        file.handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)

    try:
        fcntl.lockf(file.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
    except (BlockingIOError, PermissionError):
        return False

    return True


def _close_idle(path: str, file: _LockFile) -> None:
    if not file.held:
        if file.handle is not None:
            os.close(file.handle)

        del _files[path]


def _forget() -> None:
    """After a fork: the locks stay with the parent."""
    global _guard  # noqa: PLW0603 - it may have been held by a thread that is not here
    _guard = threading.Lock()
    for file in _files.values():
        if file.handle is not None:
            os.close(file.handle)

    _files.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
