"""A server of moto's, buckets, records, agents."""

from __future__ import annotations

import itertools
import threading
import warnings

import pytest

from ropewalk_session_s3 import S3LogStore, S3SessionManager
from ropewalk_testing.session_fixtures import key, make_agent, records  # noqa: F401 - fixtures

numbers = itertools.count()


@pytest.fixture(scope="module")
def endpoint():
    """The URL of an S3 server on loopback: moto's application for S3, without the search for it at each request."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of moto's own dependencies
        from moto.server import create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Silent(WSGIRequestHandler):
            def log_request(self, *args):
                pass

        server = make_server("127.0.0.1", 0, create_backend_app("s3"), threaded=True, request_handler=Silent)

    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


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
