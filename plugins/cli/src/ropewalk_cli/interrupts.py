"""ctrl-C: the first cancels the run, the second ends the process."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def ctrl_c_calls(cancel: Callable[[], object]) -> Iterator[None]:
    """Calls `cancel` at the first ctrl-C; the next one kills the process, whatever it is doing.

    Does nothing where signals cannot be received: outside the main thread, or when the process was told to ignore them.

    Args:
        cancel: Called within the signal handler, so it must do nothing that can wait.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return

    def first(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, second)
        click.echo("\nCancelling (ctrl-C again ends the program at once)", err=True)
        cancel()

    def second(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
