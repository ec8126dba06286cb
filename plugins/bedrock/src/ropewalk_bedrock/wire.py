"""Ends a call of the client from another thread, at any moment: the socket it waits on is shut down.

boto3 has no way to cancel a call. Closing the stream from another thread waits for the thread that reads it, and before
the first byte of the answer there is no stream yet. So the client's connections tell which call they work for. The
places where they are taken hold of are botocore's own; where a version has others, a cancelled call returns at once all
the same, and its connection is closed when the provider next says something.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Self


class Wire:
    """The connection that one call works on."""

    __slots__ = ("_connection", "_guard", "_socket", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._guard = threading.Lock()
        self._connection: Any = None
        self._socket: Any = None

    def __enter__(self) -> Self:
        _current.wire = self
        return self

    def __exit__(self, *_: object) -> None:
        _current.wire = None
        with self._guard:
            self._connection = self._socket = None

    def take(self, connection: Any) -> None:
        """Notes that the call works on this connection from now on."""
        with self._guard:
            connection.ropewalk_wire = self
            self._connection = connection
            self._hold(connection.sock)

    def _hold(self, sock: Any) -> None:
        # Kept beside the connection, which forgets its socket once it knows that it will not be used again.
        self._socket = sock or self._socket
        if self.ended:
            self._shut()

    def end(self) -> None:
        """Ends the call; may be called from any thread, and more than once."""
        self.ended = True
        with self._guard:
            self._shut()

    def _shut(self) -> None:
        if self._connection is None or self._connection.ropewalk_wire is not self:
            return  # the connection works for another call by now

        sock = self._connection.sock or self._socket
        if sock is None:
            return

        with contextlib.suppress(OSError):
            # The plain shutdown, also under TLS: nothing is written, and the reading thread wakes up.
            (socket.socket.shutdown if isinstance(sock, socket.socket) else type(sock).shutdown)(sock, socket.SHUT_RDWR)


_current = threading.local()


def watch(client: Any) -> bool:
    """Makes the connections of a client tell which call they work for; False when there is no way to."""
    session = getattr(getattr(client, "_endpoint", None), "http_session", None)
    classes = getattr(session, "_pool_classes_by_scheme", None)
    if not isinstance(classes, dict):
        return False

    for scheme, pool in list(classes.items()):
        connection = _telling(pool.ConnectionCls)
        classes[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": connection})

    return True


def _telling(base: Any) -> Any:
    def noted(connection: Any) -> None:
        wire = getattr(_current, "wire", None)
        if wire is not None:
            wire.take(connection)

    def refuse_if_ended() -> None:
        wire = getattr(_current, "wire", None)
        if wire is not None and wire.ended:
            raise ConnectionAbortedError("the call was cancelled before its request was sent")

    class Connection(base):  # type: ignore[misc]
        def putrequest(self, *args: Any, **kwargs: Any) -> Any:
            noted(self)
            refuse_if_ended()
            return super().putrequest(*args, **kwargs)

        def getresponse(self, *args: Any, **kwargs: Any) -> Any:
            noted(self)
            return super().getresponse(*args, **kwargs)

    return Connection
