"""The store passes the tests that all stores pass."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from ropewalk_session_s3 import S3LogStore
from ropewalk_testing import StoreConformance

pytestmark = pytest.mark.long


class TestS3(StoreConformance):
    processes_write = 20

    @pytest.fixture
    def store(self, options, open_store):
        self.options = options
        return open_store()

    def reopened(self, store):
        return S3LogStore(**self.options)

    def raw(self, store):
        bucket = store._bucket
        return b"\n".join(found.body for found in bucket.get_all([each.key for each in bucket.listed("")]) if found)

    @contextmanager
    def broken(self, store):
        name, store._bucket.name = store._bucket.name, "no-such-bucket"
        yield
        store._bucket.name = name
