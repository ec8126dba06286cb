"""What both servers have in common: scripts, connections, silences and the end."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit

import pytest

from ropewalk_testing import ScriptError, turn
from ropewalk_testing.servers import BedrockServer, OpenAIServer, http_fault, pause

PATHS = {BedrockServer: "/model/m/converse-stream", OpenAIServer: "/v1/chat/completions"}
BODY = {"stream": True}


@pytest.fixture(params=[BedrockServer, OpenAIServer])
def kind(request):
    return request.param


@pytest.fixture
def path(kind):
    return PATHS[kind]


def test_turns_are_answered_in_order_and_can_be_added(kind, path, connect):
    with kind(script=["one"]) as server:
        server.script("two", "three")
        client = connect(server)
        replies = [client.post(path, BODY).data for _ in range(3)]

        assert server.calls == len(server.requests) == 3

    assert [word in reply for word, reply in zip([b"one", b"two", b"three"], replies, strict=True)] == [True] * 3


def test_a_function_answers_and_sees_the_request(kind, path, connect):
    with kind(script=lambda received: received.body["word"]) as server:
        client = connect(server)

        assert b"ping" in client.post(path, BODY | {"word": "ping"}).data
        assert b"pong" in client.post(path, BODY | {"word": "pong"}).data


def test_what_a_function_raises_is_raised_at_the_end(kind, path, connect):
    replies = []

    def run():
        with kind(script=[lambda received: received.body["word"]]) as server:
            replies.append(connect(server).post(path, BODY))

    with pytest.raises(KeyError, match="word"):
        run()

    assert replies[0].status == 400
    assert b"KeyError" in replies[0].data


@pytest.mark.parametrize("raw", [[("odd", {"a": object()})], [{"a": object()}], [3]])
def test_what_no_wire_can_carry_is_raised_at_the_end(kind, path, connect, raw):
    statuses = []

    def run():
        with kind(script=[turn(raw=raw)]) as server:
            statuses.append(connect(server).post(path, BODY).status)
            assert server.open_streams == 0

    with pytest.raises((TypeError, AttributeError, ValueError)):
        run()

    assert statuses == [400]


def test_an_exhausted_script_is_an_error_that_says_so(kind, path, connect):
    with kind(script=["one"]) as server:
        client = connect(server)
        client.post(path, BODY)
        reply = client.post(path, BODY)

    assert reply.status == 400
    assert f"the script of this {kind.__name__} has 1 turn and call 2 was made".encode() in reply.data


@pytest.mark.parametrize("script", ["hello", {"text": "a"}, b"a"])
def test_what_is_no_script_is_refused(kind, script):
    with pytest.raises(ScriptError, match="a script is a list of turns"):
        kind(script=script)


@pytest.mark.parametrize("said", [ValueError("a"), turn("a", error=ValueError("b"))])
def test_an_exception_cannot_be_sent(kind, said):
    with pytest.raises(ScriptError, match=r"http_fault\(...\)"):
        kind(script=[said])


def test_a_wrong_status_is_refused():
    with pytest.raises(ScriptError, match="from 200 to 599"):
        http_fault(42)


def test_one_connection_serves_many_calls(kind, path, connect):
    with kind(script=lambda _: "ok") as server:
        client = connect(server)
        for _ in range(20):
            client.post(path, BODY)
        connect(server).post(path, BODY)

        assert server.connections == 2
        assert [received.connection for received in server.requests] == [1] * 20 + [2]


def test_many_connections_are_served_at_once(kind, path, connect):
    with kind(script=[turn("ok", stall=True)] * 20) as server:
        clients = [connect(server) for _ in range(20)]
        replies = []
        threads = [threading.Thread(target=lambda c=each: replies.append(c.post(path, BODY))) for each in clients]
        for thread in threads:
            thread.start()
        for _ in range(1000):
            if server.open_streams == 20:
                break
            threading.Event().wait(0.01)

        assert server.open_streams == 20
        server.release()
        for thread in threads:
            thread.join(30)

        assert [reply.status for reply in replies] == [200] * 20
        assert (server.open_streams, server.aborted) == (0, 0)


@pytest.mark.parametrize("stall", [0.0, 0.01, "event"])
def test_a_silence_ends(kind, path, connect, stall):
    event = threading.Event()
    event.set()
    with kind(script=[turn("late", stall=event if stall == "event" else stall)]) as server:
        assert b"late" in connect(server).post(path, BODY).data
        assert server.stalled.is_set()


@pytest.mark.parametrize("said", [turn("half", stall=True), turn(raw=[b"half", pause(True)])])
def test_a_client_that_goes_away_in_a_silence_is_noticed(kind, path, connect, said):
    with kind(script=[said]) as server:
        client = connect(server)
        response = client.open(path, BODY)
        assert response.read(1)
        assert server.stalled.wait(30)
        assert server.open_streams == 1
        response.close()
        client.connection.close()
        server.wait_streams_closed(30)

        assert (server.open_streams, server.aborted) == (0, 1)


def test_nothing_is_answered_when_the_silence_comes_first(kind, path):
    with kind(script=[turn("late", stall=True, stall_first=True)]) as server:
        netloc = urlsplit(server.url)
        with socket.create_connection((netloc.hostname, netloc.port), timeout=30) as raw:
            body = b'{"stream": true}'
            raw.sendall(b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body))
            assert server.stalled.wait(30)
            raw.setblocking(False)
            with pytest.raises(BlockingIOError):
                raw.recv(1)

        server.wait_streams_closed(30)


def test_a_stream_that_stays_open_is_told(kind, path, connect):
    with kind(script=[turn("half", stall=True)]) as server:
        connect(server).open(path, BODY).read(1)
        with pytest.raises(TimeoutError, match="1 streams are open"):
            server.wait_streams_closed(0.01)


def test_a_stopped_server_leaves_no_thread_and_no_socket(kind, path, connect):
    before = set(threading.enumerate())
    with kind(script=["ok", turn("half", stall=True)]) as server:
        client = connect(server)
        client.post(path, BODY)
        client.open(path, BODY)
        url = urlsplit(server.url)

    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((url.hostname, url.port), timeout=5)


def test_a_server_that_does_not_run_has_no_address(kind):
    with pytest.raises(ScriptError, match="`with` statement"):
        _ = kind(script=["a"]).url


def test_rubbish_is_no_trouble(kind, path, connect):
    with kind(script=["ok"]) as server:
        url = urlsplit(server.url)
        for data in (b"\x16\x03\x01\x00", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"):
            with socket.create_connection((url.hostname, url.port), timeout=30) as raw:
                raw.sendall(data)

        assert connect(server).post(path, BODY).status == 200
