"""A log that this process may write to: its lock, and its file once something is written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ropewalk.kits.sessions import SessionConflictError
from ropewalk_session_file.files import opened
from ropewalk_session_file.lines import SAID_BY, generation_in
from ropewalk_session_file.lock import FileLease
from ropewalk_session_file.place import Place


class Held:
    """The lease that a store gives out. It may be given up while a thread still writes: that one closes it then.

    Args:
        place: Where the log is.
        lock: The lock on it.
        forget: Called when it is given up.

    Attributes:
        place: Where the log is.
        generation: Of the file, once it is open; -1 when it does not say.
    """

    __slots__ = ("_descriptor", "_forget", "_lock", "_over", "_using", "generation", "place")

    def __init__(self, place: Place, lock: FileLease, forget: Callable[[Held], None]) -> None:
        self.place = place
        self.generation = -1
        self._lock = lock
        self._forget = forget
        self._descriptor: int | None = None
        self._using = threading.Lock()
        self._over = False

    def release(self) -> None:
        """As the protocol says."""
        if not self._over:
            self._over = True
            self._forget(self)

        self._close_unless_used()

    def __enter__(self) -> None:
        """For the length of one write.

        Raises:
            SessionConflictError: It was given up before the write began.
        """
        self._using.acquire()
        if self._over:  # the thread of a run that was cut off has begun late: the lock may be somebody else's by now
            self._using.release()
            raise SessionConflictError(f"{self.place.named} was given up before it was written: nothing was written")

    def __exit__(self, *_: object) -> None:
        self._using.release()
        if self._over:
            self._close_unless_used()

    def file(self, *, make: bool) -> tuple[int, int]:
        """The log's file, opened for reading and adding, and its size.

        Args:
            make: Whether it is made when it is not there.

        Raises:
            SessionConflictError: It was there, and is not any more.
            OSError: It cannot be opened.
        """
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if make else 0)
            try:
                self._descriptor = opened(self.place.log, flags)
            except FileNotFoundError:
                raise _gone(self.place) from None

            self.generation = generation_in(os.read(self._descriptor, SAID_BY))

        known = os.fstat(self._descriptor)
        if known.st_nlink == 0:
            raise _gone(self.place)

        return self._descriptor, known.st_size

    def close_file(self) -> None:
        """Closes the file: another one is in its place, or it is of no use."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _close_unless_used(self) -> None:
        if self._using.acquire(blocking=False):
            try:
                self.close_file()
                self._lock.release()
            finally:
                self._using.release()


def _gone(place: Place) -> SessionConflictError:
    return SessionConflictError(
        f"{place.named} was deleted or replaced while an agent had it open: nothing was written. To start it anew, "
        "make a new agent; to go on, put the file back"
    )
