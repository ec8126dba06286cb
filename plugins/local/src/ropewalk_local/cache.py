"""The cache folder: where it is, which files in it are verified, and the lock between processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from ropewalk_local.errors import DownloadInterruptedError

_log = logging.getLogger("ropewalk.local")
_BLOCK: Final = 1 << 22
_POLL_SECONDS: Final = 0.1

Stopped = Callable[[], bool]
"""Asked now and then by whatever takes long; True ends it."""


def never() -> bool:
    """The `Stopped` of work that nobody ends early."""
    return False


def models_folder() -> Path:
    """Where fetched models are kept: `$ROPEWALK_CACHE/models`, or `ropewalk/models` in the user's cache folder."""
    own = os.environ.get("ROPEWALK_CACHE")
    if own:
        return Path(own).expanduser() / "models"

    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg:
        return Path(xdg).expanduser() / "ropewalk" / "models"

    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "ropewalk" / "models"

    return Path.home() / ".cache" / "ropewalk" / "models"


def file_sha256(path: Path, stopped: Stopped = never) -> str:
    """The file's sha256 in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            if stopped():
                raise DownloadInterruptedError(path.name, 0, path.stat().st_size)

    return digest.hexdigest()


# -- the note beside a verified file -----------------------------------------------------------------------------


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + ".verified.json")


def note_verified(path: Path, sha256: str) -> None:
    """Remembers that the file as it is now has this hash, so that it is not hashed at every start."""
    facts = path.stat()
    note = _note_of(path)
    fresh = note.with_name(f"{note.name}.{os.getpid()}.new")
    fresh.write_text(json.dumps({"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": sha256}))
    fresh.replace(note)


def is_noted(path: Path, sha256: str) -> bool:
    """Whether the file is unchanged since it was found to have this hash."""
    try:
        facts = path.stat()
        note = json.loads(_note_of(path).read_text())
    except (OSError, ValueError):
        return False

    expected = {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": sha256}
    return bool(note == expected)


def verify(path: Path, sha256: str, stopped: Stopped = never) -> bool:
    """Whether the file has this hash; hashes it only when its size or time changed since the last check."""
    if not path.is_file():
        return False

    if is_noted(path, sha256):
        return True

    if file_sha256(path, stopped) != sha256:
        return False

    with contextlib.suppress(OSError):  # a read-only cache folder is hashed at every start
        note_verified(path, sha256)

    return True


# -- the lock ----------------------------------------------------------------------------------------------------


def _try_lock(stream: IO[bytes]) -> bool:
    """Takes the operating system's lock, which ends with the process that holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            stream.seek(0)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False

    return True


@contextlib.contextmanager
def locked(path: Path, stopped: Stopped = never) -> Iterator[None]:
    """Holds the lock of one model file, against other processes and other threads.

    Raises:
        DownloadInterruptedError: `stopped` said so while waiting.
    """
    with path.with_name(path.name + ".lock").open("a+b") as stream:
        told = False
        while not _try_lock(stream):
            if not told:
                _log.info("waiting for another process that fetches %s", path.name)
                told = True

            if stopped():
                raise DownloadInterruptedError(path.name, 0, 0)

            time.sleep(_POLL_SECONDS)

        yield  # closing the file frees the lock
