"""One HTTP exchange: what was received, and the answer as it is written."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import unquote

from ropewalk_testing.turns import Stall

POLL_SECONDS: Final = 0.01
"""How often a silent line looks whether the client has gone or the silence is over."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived.

    Attributes:
        method: `GET`, `POST` ...
        path: The path as it was sent, without a query.
        headers: By lower-cased name.
        body: The decoded JSON; bytes if it is none, None if there was no body.
        connection: The number of the TCP connection, from 1.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int = 1

    @property
    def model(self) -> str:
        """The model that was asked for: named in the path of Bedrock, in the body of OpenAI."""
        parts = self.path.split("/")
        if len(parts) == 4 and parts[1] == "model":  # noqa: PLR2004 - /model/ID/OPERATION
            return unquote(parts[2])

        return str(self.body.get("model", "")) if isinstance(self.body, dict) else ""


class LineClosed(Exception):  # noqa: N818 - reads as the fact it states
    """The client has gone, or the server is being stopped."""


class Line:
    """Writes one answer."""

    __slots__ = ("_handler", "_released", "_stopping", "on_end", "stalled")

    def __init__(
        self,
        handler: BaseHTTPRequestHandler,
        *,
        stopping: threading.Event,
        released: threading.Event,
        stalled: threading.Event,
    ) -> None:
        self._handler = handler
        self._stopping = stopping
        self._released = released
        self.stalled = stalled
        self.on_end: Callable[[], None] | None = None

    def reply(self, status: int, headers: Mapping[str, str], body: bytes, *, cut: bool = False) -> None:
        """A whole answer; with `cut` the line ends in the middle of the body."""
        self._ends()
        self._head(status, {"Content-Length": str(len(body)), **headers})
        self._write(body[: len(body) // 2] if cut else body)
        if cut:
            self.cut()

    def open(self, headers: Mapping[str, str]) -> None:
        """Begins a stream."""
        self._head(200, {"Transfer-Encoding": "chunked", **headers})

    def send(self, data: bytes) -> None:
        """Sends one piece of a stream at once."""
        if data:
            self._write(b"%x\r\n%s\r\n" % (len(data), data))

    def close(self) -> None:
        """Ends a stream as it should be ended; the connection stays."""
        self._ends()
        self._write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Closes the socket where it is."""
        self._ends()
        self._handler.close_connection = True
        with contextlib.suppress(OSError):
            self._handler.connection.shutdown(socket.SHUT_RDWR)

    def silent(self, stall: Stall) -> None:
        """Says nothing until the stall ends.

        Raises:
            LineClosed: The client went away meanwhile, or the server is being stopped.
        """
        self.stalled.set()
        until = None if isinstance(stall, (bool, int, float)) else stall
        seconds = float("inf") if until is not None or stall is True else float(stall)  # type: ignore[arg-type]
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._released.is_set() and not (until is not None and until.is_set()):
            if self._stopping.is_set() or self._gone():
                raise LineClosed

            self._stopping.wait(POLL_SECONDS)

    def _ends(self) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    def _gone(self) -> bool:
        connection = self._handler.connection
        try:
            readable, _, _ = select.select([connection], [], [], 0)
            return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        try:
            self._handler.send_response(status)
            for name, value in headers.items():
                self._handler.send_header(name, value)

            self._handler.end_headers()
        except OSError as error:
            raise LineClosed from error

    def _write(self, data: bytes) -> None:
        try:
            self._handler.wfile.write(data)
        except (OSError, ValueError) as error:
            raise LineClosed from error
