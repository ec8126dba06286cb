"""What the servers have in common: sockets, threads, the script and the counters."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from ropewalk_testing.errors import ScriptError, ScriptExhausted
from ropewalk_testing.servers.faults import Cut, HttpFault, Part, Pause, StreamFault
from ropewalk_testing.servers.line import Line, LineClosed, Received
from ropewalk_testing.servers.wire import json_bytes
from ropewalk_testing.streams import Stream
from ropewalk_testing.turns import PlainTurn, Turn, as_turn

ServerTurn: TypeAlias = PlainTurn | HttpFault | StreamFault
"""A turn of a server's script."""

Reply: TypeAlias = Stream | HttpFault | StreamFault

_JOIN_SECONDS: Final = 10.0
_SOON: Final = 0.005


class LoopbackServer(ABC):
    """A context manager: a server on 127.0.0.1, on a port of its own, that is stopped at the end.

    Attributes:
        requests: What was received, in order.
        stalled: A `threading.Event`, set when a silence begins.
    """

    def __init__(self, script: Iterable[Any] | Callable[[Received], Any] = ()) -> None:
        """Reads the script.

        Args:
            script: Turns, one per model call in the order of arrival; functions `(received) -> turn` among them. One
                function alone answers every call.

        Raises:
            ScriptError: The script holds something that is no turn, or that no wire can carry.
        """
        self.requests: list[Received] = []
        self.stalled = threading.Event()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._released = threading.Event()
        self._endless = script if callable(script) else None
        self._queue: list[Any] = []
        self._calls = self._connections = self._open = self._aborted = 0
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []
        self._http: _Http | None = None
        if not callable(script):
            if isinstance(script, (str, bytes, Mapping)):
                raise ScriptError(f"{script!r} is no script: a script is a list of turns, such as script=['hello']")

            self.script(*script)

    # -- for tests -------------------------------------------------------------------------------------------------

    def script(self, *turns: Any) -> None:
        """Adds turns at the end of the script."""
        entries = [turn if _is_maker(turn) else self._reply(turn) for turn in turns]
        with self._lock:
            self._queue.extend(entries)

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        if self._http is None:
            raise ScriptError(f"this {type(self).__name__} does not run: use it in a `with` statement")

        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def connections(self) -> int:
        """TCP connections accepted so far."""
        return self._connections

    @property
    def open_streams(self) -> int:
        """Answers of the model that are under way now, silent ones too."""
        return self._open

    @property
    def aborted(self) -> int:
        """Answers whose client went away before their end."""
        return self._aborted

    @property
    def calls(self) -> int:
        """How many turns were asked for."""
        return self._calls

    def release(self) -> None:
        """Ends every silence, those under way and those to come."""
        self._released.set()

    def wait_streams_closed(self, seconds: float = 5.0) -> None:
        """Waits, blocking, until no stream is open; see `open_streams`.

        Raises:
            TimeoutError: One still is after so many seconds.
        """
        for _ in range(max(1, int(seconds / _SOON))):
            if not self._open:
                return

            time.sleep(_SOON)

        raise TimeoutError(f"{self._open} streams are open after {seconds} seconds: the client did not close them")

    # -- running ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Starts it."""
        self._http = _Http(self)
        self._spawn(self._http.serve_forever, 0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stops it and closes its connections; raises what a function of the script raised, if nothing else did."""
        http = self._http
        if http is None:
            return

        self._stopping.set()
        http.shutdown()
        http.server_close()
        with self._lock:
            sockets, threads = list(self._sockets), list(self._threads)

        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

        for thread in threads:
            thread.join(_JOIN_SECONDS)

        if self._errors and kind is None:
            raise self._errors[0]

    def _spawn(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True, name=type(self).__name__)
        with self._lock:
            self._threads = [each for each in self._threads if each.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        with self._lock:
            self._connections += 1
            number = self._connections
            self._sockets.add(connection)

        try:
            with contextlib.suppress(OSError):
                _Handler(connection, address, self, number)
        finally:
            with self._lock:
                self._sockets.discard(connection)

            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

            connection.close()

    # -- answering -------------------------------------------------------------------------------------------------

    def handle(self, received: Received, handler: BaseHTTPRequestHandler) -> None:
        """Answers one request."""
        with self._lock:
            self.requests.append(received)

        line = Line(handler, stopping=self._stopping, released=self._released, stalled=self.stalled)
        try:
            self.answer(received, line)
        except LineClosed:
            handler.close_connection = True

    @abstractmethod
    def answer(self, received: Received, line: Line) -> None:
        """Answers by path: with `play` where a model is called."""

    @abstractmethod
    def parts(self, reply: Stream | StreamFault, received: Received, call: int) -> Sequence[Part]:
        """The pieces of a streamed answer."""

    @abstractmethod
    def whole(self, reply: Stream, received: Received, call: int) -> Any:
        """The JSON of an answer that is not streamed."""

    @abstractmethod
    def fault(self, line: Line, fault: HttpFault) -> None:
        """Sends an error the way the provider does."""

    def play(self, received: Received, line: Line, *, stream: bool, headers: Mapping[str, str]) -> None:
        """Answers a model call with the next turn."""
        with self._lock:
            self._open += 1

        line.on_end = self._ended
        try:
            call, reply = self._next(received)
            if isinstance(reply, HttpFault):
                self.fault(line, reply)
            elif stream:
                self._play_stream(line, reply, self.parts(reply, received, call), headers)
            elif isinstance(reply, StreamFault):
                self.fault(line, HttpFault(500, reply.code[:1].upper() + reply.code[1:], reply.message))
            else:
                self._play_whole(line, reply, self.whole(reply, received, call))
        except LineClosed:
            if line.on_end is not None:
                self._ended(aborted=True)

            raise
        except Exception as error:  # noqa: BLE001 - raised again where the test sees it, at the end of the `with`
            self._errors.append(error)
            self.fault(line, HttpFault(400, "ScriptError", f"this turn of the script cannot be sent: {error!r}"))

    def _ended(self, *, aborted: bool = False) -> None:
        """Counts before the client can see the end, so that tests which have seen it find the numbers right."""
        with self._lock:
            self._open -= 1
            self._aborted += aborted

    def _play_stream(
        self, line: Line, reply: Stream | StreamFault, parts: Sequence[Part], headers: Mapping[str, str]
    ) -> None:
        if isinstance(reply, Stream) and reply.silent_first and reply.turn.stall is not None:
            line.silent(reply.turn.stall)

        line.open(headers)
        for part in parts:
            if isinstance(part, Pause):
                line.silent(part.stall)
            elif isinstance(part, Cut):
                line.cut()
                return
            else:
                line.send(part)

        line.close()

    def _play_whole(self, line: Line, reply: Stream, body: Any) -> None:
        if reply.turn.stall is not None:
            line.silent(reply.turn.stall)

        data = body if isinstance(body, bytes) else json_bytes(body)
        line.reply(200, {"Content-Type": "application/json"}, data, cut=reply.turn.cut)

    # -- the script ------------------------------------------------------------------------------------------------

    def _next(self, received: Received) -> tuple[int, Reply]:
        with self._lock:
            self._calls += 1
            call = self._calls
            entry = self._endless or (self._queue[call - 1] if call <= len(self._queue) else None)

        try:
            if entry is None:
                return call, HttpFault(
                    400, "ScriptExhausted", str(ScriptExhausted(len(self._queue), type(self).__name__))
                )

            return call, self._reply(entry(received) if callable(entry) else entry)
        except Exception as error:  # noqa: BLE001 - raised again where the test sees it, at the end of the `with`
            self._errors.append(error)
            return call, HttpFault(400, "ScriptError", f"a function of the script raised {error!r}")

    def _reply(self, value: Any) -> Reply:
        if isinstance(value, (HttpFault, StreamFault, Stream)):
            return value
        if isinstance(value, BaseException) or (isinstance(value, Turn) and value.error is not None):
            raise ScriptError(
                "a server cannot raise an exception in its client: give http_fault(...) for an error in place of the "
                "answer, stream_fault(...) for one inside the stream"
            )

        return Stream(as_turn(value))


def _is_maker(value: Any) -> bool:
    return callable(value) and not isinstance(value, BaseException)


class _Http(HTTPServer):
    """Accepts; each connection gets a thread of its server."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, owner: LoopbackServer) -> None:
        self._owner = owner
        super().__init__(("127.0.0.1", 0), BaseHTTPRequestHandler)  # not used: see process_request

    def server_bind(self) -> None:
        """Binds without the look-up of the host's name that HTTPServer makes."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hands a connection over."""
        self._owner._spawn(self._owner._serve, request, client_address)  # noqa: SLF001 - two halves of one server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 0

    def __init__(self, connection: socket.socket, address: Any, owner: LoopbackServer, number: int) -> None:
        self._owner = owner
        self._number = number
        super().__init__(connection, address, None)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
        """Says nothing: a test's output is its own."""

    def do_GET(self) -> None:
        """Answers."""
        self._owner.handle(self._received(), self)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _received(self) -> Received:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length) if length else b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Received(self.command, self.path.partition("?")[0], headers, _decoded(data), self._number)


def _decoded(data: bytes) -> Any:
    if not data:
        return None

    try:
        return json.loads(data)
    except ValueError:
        return data
