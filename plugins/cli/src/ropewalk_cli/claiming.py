"""One process at a time goes on with a paused run: two would run its tools twice."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from ropewalk_cli.saved import SavedRunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Keeps other processes from going on with the file; where files cannot be locked it does nothing.

    Raises:
        SavedRunError: Another process goes on with it.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
        except OSError:
            pass  # whoever reads it says what is wrong
        else:
            _lock(file, path)

        yield


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:
        return

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        is_there = False
    except OSError:
        return  # a file system without locks

    if not is_there:
        raise SavedRunError(f"another process goes on with {path}: wait for it, and look what has become of the file")
