"""Files as the store needs them: never through a link, never half replaced, errors that say what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

from ropewalk.kits.sessions import SessionException

PRIVATE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700

# a pipe in the place of a file must not be waited for; Windows knows none of these
_CAREFUL: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)

_ADVICE: Final = {
    errno.ENOSPC: "free some space, then call the agent again",
    errno.EDQUOT: "free some space, then call the agent again",
    errno.EFBIG: "compact the session, or keep fewer runs",
    errno.EACCES: "give this user the right to write there, or choose another storage_dir",
    errno.EPERM: "give this user the right to write there, or choose another storage_dir",
    errno.EROFS: "choose a storage_dir that can be written to",
    errno.ELOOP: "it is a link, and links are not followed: remove it",
    errno.ENOTDIR: "something that is no folder is in the way: remove it",
    errno.EISDIR: "a folder is in the way: remove it",
}


class Explained:
    """Turns errors of the operating system into errors of sessions; a class, as it is entered at every commit.

    Args:
        doing: What is done to it.
        path: The file.

    Raises:
        SessionException: On leaving, with what was done, to which file, and what to do.
    """

    __slots__ = ("_doing", "_path")

    def __init__(self, doing: str, path: Path) -> None:
        self._doing = doing
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):
            advice = _ADVICE.get(error.errno or 0, "see that the folder can be used, or choose another storage_dir")
            raise SessionException(
                f"{self._path} cannot be {self._doing} ({error.strerror or error}): {advice}"
            ) from error


def opened(path: Path, flags: int) -> int:
    """Opens a regular file, which is made for this user alone when the flags say so.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    descriptor = os.open(path, flags | _CAREFUL | _BINARY, PRIVATE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")

    return descriptor


def read_all(descriptor: int, start: int = 0) -> bytes:
    """What a file holds from a place on."""
    pieces = []
    os.lseek(descriptor, start, os.SEEK_SET)
    while piece := os.read(descriptor, max(os.fstat(descriptor).st_size - start, 65_536)):
        pieces.append(piece)

    return b"".join(pieces)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it at the file's end."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_new(path: Path, data: bytes) -> None:
    """Makes a file that was not there, durable.

    Raises:
        OSError: It cannot be written; there is no file then.
    """
    descriptor = opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        raise

    os.close(descriptor)


def replace_with(path: Path, data: bytes) -> None:
    """Puts a file in the place of another: whoever opens the path finds the old one or the new one, whole.

    Raises:
        OSError: It cannot be written; the old one is there.
    """
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)  # of a process that ended here
    write_new(beside, data)
    beside.replace(path)
    sync_folder(path.parent)


def private_folder(folder: Path) -> None:
    """Makes a folder for this user alone, unless it is there.

    Raises:
        OSError: It cannot be made, or is a link.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(PRIVATE_FOLDER)

    check_folder(folder)


def check_folder(folder: Path) -> None:
    """Refuses what is no folder of its own.

    Raises:
        OSError: It is a link, no folder, or not there.
    """
    mode = os.lstat(folder).st_mode  # half the time of Path.lstat, twice a run
    if not stat.S_ISDIR(mode):
        raise OSError(errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTDIR, "it is no folder of its own")
