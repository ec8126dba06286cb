"""Sessions in a bucket, killed before and after records."""

from __future__ import annotations

import functools

import pytest

from ropewalk_testing import crash

pytest.importorskip("ropewalk_session_s3")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto")

WHOLE = crash.Scenario(subagents=2, plugins=("subagents",))


def open_bucket(folder, endpoint_url):
    from ropewalk_session_s3 import S3LogStore

    return S3LogStore("crashes", region_name="us-east-1", endpoint_url=endpoint_url)


def test_crashes_of_clients_of_s3_are_survived(endpoint, sample, monkeypatch):
    for name, value in {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}.items():
        monkeypatch.setenv(name, value)

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", region_name="us-east-1", endpoint_url=endpoint)
    client.create_bucket(Bucket="crashes")
    client.close()
    store = functools.partial(open_bucket, endpoint_url=endpoint)
    crash.run(store, WHOLE, sample=sample, seed=1, processes=2).check()
