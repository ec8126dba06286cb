"""Another process, for tests of what two of them do to one log."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import traceback
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pytest


class Child:
    """A forked process that does one thing and tells its outcome.

    Args:
        work: What it does; what it returns, or its traceback, is the answer.
        stays: Whether it lives on after that until it is killed.
    """

    def __init__(self, work: Callable[[], str], *, stays: bool = False) -> None:
        self._work = work
        self._stays = stays
        self._pid = 0
        self._pipe = -1

    def __enter__(self) -> Self:
        if not hasattr(os, "fork"):
            pytest.skip("the system cannot fork")

        self._pipe, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the child uses no thread of its parent's
            self._pid = os.fork()

        if self._pid == 0:
            self._be_child(writing)

        os.close(writing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        os.close(self._pipe)

    def answer(self, seconds: float) -> str:
        """What the work came to.

        Raises:
            AssertionError: It has not ended in time.
        """
        told = b""
        while not told.endswith(b"\0"):
            ready, _, _ = select.select([self._pipe], [], [], seconds)
            piece = os.read(self._pipe, 65_536) if ready else b""
            if not piece:
                raise AssertionError(f"the other process {'ended' if ready else 'hangs'}, and has told {told!r}")

            told += piece

        return told[:-1].decode()

    def kill(self) -> None:
        """Kills it, and waits until it is dead."""
        pid, self._pid = self._pid, 0
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

            os.waitpid(pid, 0)

    def _be_child(self, writing: int) -> None:
        try:
            try:
                told = self._work()
            except BaseException:  # noqa: BLE001 - told; the child must not go on as its parent
                told = traceback.format_exc()

            os.write(writing, told.encode() + b"\0")
            while self._stays:
                signal.pause()
        finally:
            os._exit(0)
