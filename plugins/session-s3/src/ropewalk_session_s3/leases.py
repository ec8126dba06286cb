"""Leases: the head of a log says who writes. They last 30 seconds, and are renewed every 10."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.sessions import SessionConflictError, SessionException
from ropewalk_session_s3.bucket import Bucket
from ropewalk_session_s3.head import Head

logger = logging.getLogger("ropewalk.sessions")

SECONDS: Final = 30.0
"""How long a lease lasts after it was taken or renewed; a dead machine's log is free after that."""

BEAT: Final = 10.0
"""Seconds between renewals."""

_PATIENCE: Final = 5.0  # seconds for which a round of renewals is waited for; what is slow then goes on by itself
_AT_ONCE: Final = 16
_TRIES: Final = 3

_MARGIN: Final = 5.0
"""So long before its end the holder believes in its lease no more: the server counts in whole seconds."""


def _elapsed() -> float:
    """Seconds on a clock that runs on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


class S3Lease:
    """A log that this process has taken.

    Args:
        bucket: Where the log is.
        name: The key of its head.
        what: Names the log in errors.
        head: The head, with the lease.
        etag: The ETag of the head that is there; None when there is none.
    """

    __slots__ = (
        "__weakref__",
        "_begun",
        "_bucket",
        "_etag",
        "_guard",
        "_lost",
        "_name",
        "_process",
        "_sent",
        "_what",
        "head",
    )

    def __init__(self, bucket: Bucket, name: str, what: str, head: Head, etag: str | None) -> None:
        self.head = head
        self._bucket = bucket
        self._name = name
        self._what = what
        self._etag = etag
        self._sent = 0.0
        self._begun = False
        self._lost = False
        self._guard = threading.RLock()
        self._process = os.getpid()

    @classmethod
    def take(cls, bucket: Bucket, name: str, what: str, new: Callable[[], Head]) -> S3Lease:
        """Takes a log. Blocks.

        Args:
            bucket: Where the log is.
            name: The key of its head.
            what: Names the log in errors.
            new: Makes the head of a log that is not there yet.

        Raises:
            SessionConflictError: Somebody else has it.
        """
        for _ in range(_TRIES):  # a dead holder's last renewal may come after the first look
            found = bucket.get(name)
            head = Head.from_bytes(found.body, f"{bucket}: {name}") if found is not None else new()
            if found is not None and head.is_taken(found.age) and not heartbeat.has_lost(head):
                break

            lease = cls(bucket, name, what, head.leased(SECONDS), found.etag if found is not None else None)
            heartbeat.add(lease)
            with contextlib.suppress(SessionConflictError):
                lease.begin()
                return lease

        raise _in_use(what, bucket)

    def begin(self) -> None:
        """Writes the lease for the first time. Blocks.

        Raises:
            SessionConflictError: Somebody else was quicker.
        """
        try:
            self.write(self.head)
            self._begun = True
        finally:
            if not self._begun:
                heartbeat.remove(self)

    @property
    def is_mine(self) -> bool:
        """Whether this process has taken it, and not the one that it was forked from."""
        return self._process == os.getpid()

    def ensure(self) -> None:
        """Renews the lease when too little of it is left. Blocks.

        Raises:
            SessionConflictError: Somebody else has taken the log.
            SessionException: It cannot be renewed.
        """
        with self._guard:
            if self._lost:
                raise self._taken_over()

            if _elapsed() - self._sent > SECONDS - _MARGIN:
                self.write(self.head)

    def write(self, head: Head) -> None:
        """Writes the head anew, which renews the lease. Blocks.

        Raises:
            SessionConflictError: Somebody else has taken the log.
            SessionException: It cannot be written.
        """
        with self._guard:
            sent = _elapsed()
            etag = self._bucket.put(self._name, head.to_bytes(), etag=self._etag)
            if etag is None and not self._was_mine(head):
                self._lost = True
                raise self._taken_over()

            self._etag, self._sent, self.head = etag or self._etag, sent, head

    async def release(self) -> None:
        """Gives the log up."""
        heartbeat.remove(self)
        if self.is_mine and not self._lost and self.head.holder is not None:
            await in_thread(self.give_up)

    def give_up(self) -> None:
        """Gives the log up. Blocks. What cannot be written expires."""
        heartbeat.remove(self)
        with self._guard:
            if self._lost or self.head.holder is None:
                return

            try:
                self.write(self.head.free())
            except SessionException as error:
                logger.info("%s: its lease expires by itself: %s", self._what, error)
                self._lost = True

    def beat(self) -> None:
        """Renews the lease, on behalf of a run that may be waiting for its model. Blocks."""
        if not self._guard.acquire(blocking=False):
            return  # it is being written just now

        try:
            if not self._lost and self._begun and self.head.holder is not None:
                self.write(self.head)
        except SessionException as error:  # the run hears of it when it writes next
            logger.warning("%s: its lease was not renewed: %s", self._what, error)
        finally:
            self._guard.release()

    def _was_mine(self, head: Head) -> bool:
        """Whether the head is what was to be written: the first answer was lost, and the write was repeated."""
        found = self._bucket.get(self._name)
        if found is None or found.body != head.to_bytes():
            return False

        self._etag = found.etag
        return True

    def _taken_over(self) -> SessionConflictError:
        return SessionConflictError(
            f"{self._what}: the lease expired, and somebody else has taken the log in {self._bucket}: build the agent "
            "again, which reads it, and repeat the call"
        )


def _in_use(what: str, bucket: Bucket) -> SessionConflictError:
    return SessionConflictError(
        f"{what} is in use by another run, in {bucket}: wait for its end (a run whose machine is gone counts for "
        f"{SECONDS:g} seconds), or use another session_id"
    )


class Heartbeat:
    """Renews the leases of this process. Its thread runs while there are any; a lease that nobody has is forgotten."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._leases: WeakSet[S3Lease] = WeakSet()
        self._running = False

    def add(self, lease: S3Lease) -> None:
        """Renews a lease from now on."""
        with self._guard:
            self._leases.add(lease)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="ropewalk-s3-heartbeat", daemon=True).start()

    def remove(self, lease: S3Lease) -> None:
        """Renews a lease no more."""
        with self._guard:
            self._leases.discard(lease)

    def has_lost(self, head: Head) -> bool:
        """Whether a head names a lease of this process that nobody has any more: its agent was given up in a run."""
        with self._guard:
            return head.is_of_this_process and all(head.holder != lease.head.holder for lease in self._leases)

    def beat(self) -> bool:
        """Renews all leases, many at a time: one whose store does not answer must not cost the others theirs.

        Returns:
            Whether there are any.
        """
        with self._guard:
            leases = deque(self._leases)
            self._running = bool(leases)

        renewing = [
            threading.Thread(target=_renew, args=(leases,), daemon=True) for _ in range(min(_AT_ONCE, len(leases)))
        ]
        for thread in renewing:
            thread.start()

        until = time.monotonic() + _PATIENCE
        for thread in renewing:
            thread.join(max(0.0, until - time.monotonic()))

        return bool(renewing)

    def reset(self) -> None:
        """After a fork: leases and thread are the parent's."""
        self.__init__()  # type: ignore[misc]

    def _run(self) -> None:
        while True:
            time.sleep(BEAT)
            if not self.beat():
                return


def _renew(leases: deque[S3Lease]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            leases.popleft().beat()


heartbeat: Final = Heartbeat()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=heartbeat.reset)
