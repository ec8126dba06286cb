"""Puts a model file together from pieces, in a file that at any time is a checked prefix of the pinned one."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from ropewalk_local.cache import Stopped, never, note_verified
from ropewalk_local.errors import DownloadInterruptedError, HashMismatchError
from ropewalk_local.progress import Progress

if TYPE_CHECKING:
    from types import TracebackType

    from ropewalk_local.catalog import ModelFile, Part

_BLOCK: Final = 1 << 18


class WriteError(Exception):
    """The unfinished file cannot be written: no fault of the source, and no other source helps.

    Attributes:
        error: What the system says.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


Read = Callable[[int], bytes]
"""Reads at most so many bytes; fewer than asked for do not mean the end, none do."""


class Assembly:
    """The unfinished file of one model, beside its place in the cache folder.

    Opening it checks what an earlier try left, piece by piece, keeps the good pieces and cuts off the rest. Both
    sources append the same pieces, so either goes on where the other stopped.

    Args:
        entry: The model.
        target: Where the whole file will be.
        stopped: Asked between blocks; True ends the work and keeps what is checked.
    """

    def __init__(self, entry: ModelFile, target: Path, stopped: Stopped = never) -> None:
        self._entry = entry
        self._target = target
        self._stopped = stopped
        self._partial = target.with_name(target.name + ".partial")
        self._progress = Progress(entry.name, entry.size)
        self._whole = hashlib.sha256()
        self._done = 0
        self._stream = self._open()

    @property
    def remaining(self) -> tuple[Part, ...]:
        """The pieces still to come."""
        return self._entry.parts[self._done :]

    @property
    def folder(self) -> Path:
        """The cache folder, where there is room for a wheel."""
        return self._target.parent

    @property
    def size(self) -> int:
        """Bytes that are there and checked."""
        return sum(part.size for part in self._entry.parts[: self._done])

    def _open(self) -> IO[bytes]:
        # unbuffered: of a full disk nothing is left that closing would write again
        stream: IO[bytes] = self._partial.open("r+b" if self._partial.exists() else "w+b", buffering=0)
        try:
            while self._done < len(self._entry.parts) and self._keep_next(stream):
                pass
        except BaseException:
            stream.close()
            raise

        stream.seek(self.size)
        stream.truncate()
        return stream

    def _keep_next(self, stream: IO[bytes]) -> bool:
        """Counts the next piece as done when the file already has it."""
        stream.seek(self.size)
        try:
            self._count(self._copy(stream.read, lambda _: None, "what an earlier try left"))
        except HashMismatchError:
            return False
        except DownloadInterruptedError:
            self._obey()
            return False

        return True

    def append(self, read: Read, source: str) -> None:
        """Appends the next piece, or nothing.

        Args:
            read: Gives the piece's bytes, and no more of them than asked for.
            source: Where they come from, for the error.

        Raises:
            DownloadInterruptedError: The bytes end too early, or the work was stopped.
            HashMismatchError: They are not the pinned ones.
            WriteError: There is no room for them.
        """
        start = self.size
        try:
            self._count(self._copy(read, self._write, source))
        finally:
            if self.size == start:
                self._stream.seek(start)
                self._stream.truncate()

    def _write(self, block: bytes) -> None:
        rest = memoryview(block)
        try:
            while rest:
                rest = rest[self._stream.write(rest) :]
        except OSError as error:
            raise WriteError(error) from error

    def _copy(self, read: Read, write: Callable[[bytes], object], source: str) -> Any:
        """Copies the next piece and returns the hash of all up to its end."""
        part, start = self._entry.parts[self._done], self.size
        whole, piece, count = self._whole.copy(), hashlib.sha256(), 0
        while count < part.size:
            block = read(min(_BLOCK, part.size - count))
            self._obey()
            if not block:
                raise DownloadInterruptedError(self._entry.name, start, self._entry.size)

            piece.update(block)
            whole.update(block)
            write(block)
            count += len(block)
            self._progress.update(start + count)

        if piece.hexdigest() != part.sha256:
            raise HashMismatchError(source, part.sha256, piece.hexdigest())

        return whole

    def _count(self, whole: Any) -> None:
        self._whole = whole
        self._done += 1

    def _obey(self) -> None:
        if self._stopped():
            raise DownloadInterruptedError(self._entry.name, self.size, self._entry.size)

    def finish(self) -> None:
        """Checks the whole and moves it to its place in one step.

        Raises:
            HashMismatchError: The catalog contradicts itself; the file is thrown away.
        """
        digest = self._whole.hexdigest()
        if digest != self._entry.sha256:
            self.close()
            self._partial.unlink(missing_ok=True)
            raise HashMismatchError(self._entry.name, self._entry.sha256, digest)

        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()
        self._partial.replace(self._target)
        with contextlib.suppress(OSError):  # without the note it is hashed at the next start
            note_verified(self._target, digest)

    def close(self) -> None:
        """Closes the unfinished file and keeps it."""
        self._progress.close()
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
