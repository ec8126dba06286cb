"""A server of moto's, buckets, records, agents."""

from __future__ import annotations

import itertools
import warnings

import pytest

from ropewalk import Agent
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import LogKey
from ropewalk_session_s3 import S3LogStore, S3SessionManager
from ropewalk_testing import ScriptedModel

numbers = itertools.count()


@pytest.fixture(scope="module")
def endpoint():
    """The URL of an S3 server on loopback."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of moto's own dependencies
        from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def credentials():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
            patch.setenv(name, "true")

        yield


@pytest.fixture
def options(endpoint, credentials):
    """A new bucket, as arguments of stores and managers."""
    name = f"bucket-{next(numbers)}"
    store = S3LogStore(name, region_name="us-east-1", endpoint_url=endpoint)
    store._bucket._client().create_bucket(Bucket=name)
    store.close()
    return {"bucket": name, "region_name": "us-east-1", "endpoint_url": endpoint}


@pytest.fixture
def open_store(options):
    """Opens one more store on the bucket: `open_store()`."""
    opened = []

    def make(**more):
        opened.append(S3LogStore(**{**options, **more}))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def open_manager(options):
    opened = []

    def make(session_id="order-17", **more):
        opened.append(S3SessionManager(session_id, **options, **more))
        return opened[-1]

    yield make
    for manager in opened:
        manager.close()


@pytest.fixture
def requests_of():
    """Counts a store's requests by operation: `requests_of(store)` gives a list that grows."""

    def watch(store):
        seen = []
        store._bucket._client().meta.events.register(
            "before-call.s3", lambda model, **_: seen.append(model.name), unique_id="counting"
        )
        return seen

    return watch


@pytest.fixture
def key():
    return LogKey("order-17", "default")


@pytest.fixture
def records():
    """Makes records of a run: `records(3)`, `records(2, after=3)`."""

    def make(count, after=0, run="run_1", text="Hello."):
        message = {"role": "user", "content": [{"text": text}]}
        return [
            Record(run, after + i, "message_appended", {"id": after + i, "message": message}, 1.5 + after + i)
            for i in range(count)
        ]

    return make


@pytest.fixture
def make_agent():
    """An agent that prints nothing: `make_agent(manager, turns)`."""

    def make(manager, turns, **parameters):
        return Agent(model=ScriptedModel(turns), callback_handler=None, session_manager=manager, **parameters)

    return make
