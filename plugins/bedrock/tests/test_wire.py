from __future__ import annotations

import socket
import threading

import pytest

from ropewalk_bedrock.wire import Wire, watch


class Connection:
    def __init__(self, sock):
        self.sock = sock

    def putrequest(self, *_):
        return "put"

    def getresponse(self):
        return "got"


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def watched():
    """The connection class of a client that is watched."""

    class Pool:
        ConnectionCls = Connection

    class Session:
        _pool_classes_by_scheme = {"http": Pool}  # noqa: RUF012 - as botocore has it

    class Endpoint:
        http_session = Session()

    class Client:
        _endpoint = Endpoint()

    assert watch(Client())
    return Session._pool_classes_by_scheme["http"].ConnectionCls


def ended(theirs):
    theirs.settimeout(0.0)
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


def test_ending_a_call_ends_its_connection(watched, pair):
    wire = Wire()
    with wire:
        assert watched(pair[0]).putrequest() == "put"
        wire.end()

    assert ended(pair[1])


def test_a_connection_that_is_made_after_the_end_is_ended_at_once(watched, pair):
    wire = Wire()
    wire.end()
    with wire:
        assert watched(pair[0]).getresponse() == "got"

    assert ended(pair[1])


def test_a_request_of_an_ended_call_is_not_sent(watched, pair):
    wire = Wire()
    wire.end()

    with wire, pytest.raises(ConnectionAbortedError):
        watched(None).putrequest()


def test_a_connection_that_forgot_its_socket_is_ended_too(watched, pair):
    wire = Wire()
    with wire:
        connection = watched(pair[0])
        connection.getresponse()
        connection.sock = None
        wire.end()

    assert ended(pair[1])


def test_a_connection_that_works_for_the_next_call_is_left_alone(watched, pair):
    connection, first, second = watched(pair[0]), Wire(), Wire()
    with first:
        connection.putrequest()
        with second:
            connection.putrequest()
            first.end()
            assert not ended(pair[1])


def test_a_call_that_is_over_ends_nothing(watched, pair):
    wire = Wire()
    with wire:
        watched(pair[0]).putrequest()

    wire.end()

    assert not ended(pair[1])


def test_another_threads_calls_are_not_mixed_up(watched, pair):
    wire = Wire()
    with wire:
        thread = threading.Thread(target=watched(pair[0]).putrequest)
        thread.start()
        thread.join()
        wire.end()

    assert not ended(pair[1])


def test_a_socket_that_is_closed_already_is_no_error(watched):
    wire, (ours, theirs) = Wire(), socket.socketpair()
    with wire:
        watched(ours).putrequest()
        ours.close()
        theirs.close()
        wire.end()
        wire.end()

    assert ours.fileno() == theirs.fileno() == -1


def test_a_client_of_another_make_is_not_watched():
    assert not watch(object())


def test_the_real_client_is_watched():
    import boto3

    client = boto3.Session().client("bedrock-runtime", region_name="us-west-2")

    assert watch(client)
