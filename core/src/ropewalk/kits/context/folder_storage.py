"""A folder as storage: one file an item, for this user alone, never half written, never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, final

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.context.framing import MOST_HEAD, SUFFIX, file_name, framed, key_in, unframed
from ropewalk.kits.context.storage import StorageError

_PRIVATE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700
# a pipe in the place of a file must not be waited for; Windows knows none of these
_CAREFUL: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)
_ADVICE: Final = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "give this user the right to use it, or choose another folder",
    errno.EPERM: "give this user the right to use it, or choose another folder",
    errno.EROFS: "choose a folder that can be written to",
    errno.ELOOP: "it is a link, and links are not followed: remove it",
    errno.ENOTDIR: "something that is no folder is in the way: remove it",
    errno.EEXIST: "something that is no folder is in the way: remove it",
    errno.EISDIR: "a folder is in the way: remove it",
}


@final
class FolderStorage:
    """Keeps each item in a file of a folder, which is made when it is first needed.

    What is written is there for other processes at once, and after this one has ended.

    Args:
        folder: The folder. Several storages may share one.
    """

    __slots__ = ("folder",)

    durable: Final = True

    def __init__(self, folder: str | Path) -> None:
        self.folder: Final = Path(folder).expanduser().absolute()

    def __repr__(self) -> str:
        return f"FolderStorage({str(self.folder)!r})"

    async def write(self, key: str, data: bytes) -> None:
        """See `ContextStorage`."""
        await in_thread(self._write, key, data)

    async def read(self, key: str) -> bytes | None:
        """See `ContextStorage`."""
        return await in_thread(self._read, key)

    async def delete(self, key: str) -> bool:
        """See `ContextStorage`."""
        return await in_thread(self._delete, key)

    async def list(self, prefix: str = "") -> Sequence[str]:
        """See `ContextStorage`."""
        return await in_thread(self._list, prefix)

    def _write(self, key: str, data: bytes) -> None:
        path = self.folder / file_name(key)
        beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
        content = framed(key, data)
        with _explained("written", path):
            self.folder.mkdir(_PRIVATE_FOLDER, parents=True, exist_ok=True)
            try:
                descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFUL | _BINARY, _PRIVATE)
                with open(descriptor, "wb") as file:  # noqa: PTH123 - Path.open makes no private file
                    file.write(content)

                beside.replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    beside.unlink()

                raise

    def _read(self, key: str) -> bytes | None:
        path = self.folder / file_name(key)
        with _explained("read", path):
            content = _content(path)

        return None if content is None else unframed(key, content, str(path))

    def _delete(self, key: str) -> bool:
        path = self.folder / file_name(key)
        with _explained("removed", path):
            try:
                path.unlink()
            except FileNotFoundError:
                return False

        return True

    def _list(self, prefix: str) -> Sequence[str]:
        with _explained("read", self.folder):
            try:
                names = os.listdir(self.folder)  # noqa: PTH208 - half the time of iterdir
            except FileNotFoundError:
                return []

            keys = [key_in(_content(self.folder / name, MOST_HEAD) or b"") for name in names if name.endswith(SUFFIX)]

        return sorted(key for key in keys if key is not None and key.startswith(prefix))


def _content(path: Path, most: int = -1) -> bytes | None:
    """What a regular file holds; None when there is no file.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _CAREFUL | _BINARY)
    except FileNotFoundError:
        return None

    with open(descriptor, "rb") as file:  # noqa: PTH123 - Path.open follows links
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")

        return file.read(most)


@contextlib.contextmanager
def _explained(done: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "see that the folder is there and can be used, or choose another one")
        raise StorageError(f"{path} cannot be {done} ({error.strerror or error}): {advice}") from error
