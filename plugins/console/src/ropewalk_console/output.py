"""Standard output that copes: with characters that it cannot encode, a reader that has gone, a disk that is full."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from ropewalk.kits.terminal import harmless

logger = logging.getLogger("ropewalk.console")


def write(text: str) -> None:
    """Writes text to standard output, at once.

    A character that the output cannot encode becomes `?`, and on a terminal one that would steer it a replacement
    character. When the output cannot be written, or there is none, the text is dropped: the run is not about its
    display.
    """
    stream = sys.stdout  # looked up each time: programs and tests replace it
    if stream is None or stream.closed:  # None under pythonw
        return

    try:
        _write(stream, harmless(text) if stream.isatty() else text)
        stream.flush()
    except BlockingIOError:
        logger.info("standard output takes nothing just now; a piece of what is printed is dropped")
    except BrokenPipeError:
        logger.info("the reader of standard output has closed it; what is printed from now on is dropped")
        _drop_the_rest(stream)
    except OSError as error:
        logger.warning("standard output cannot be written (%s); what is printed from now on is dropped", error)
        _drop_the_rest(stream)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))


def _drop_the_rest(stream: TextIO) -> None:
    """Points a dead pipe at nothing, so that what is still buffered cannot fail again when the interpreter ends."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return  # no file of the operating system: nothing is buffered below it

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def tool_line(number: int, name: str) -> str:
    """The line that announces a tool use."""
    return f"\nTool #{number}: {name}\n"


def discarded_line(reason: str) -> str:
    """The line after a part of an answer that does not count."""
    return f"\n[the answer starts again: {reason}]\n"
