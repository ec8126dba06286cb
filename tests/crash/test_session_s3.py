"""Sessions in a bucket, killed before and after records."""

from __future__ import annotations

import functools

import pytest

from ropewalk_testing import crash

S3LogStore = pytest.importorskip("ropewalk_session_s3").S3LogStore
boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto")

WHOLE = crash.Scenario(subagents=2, plugins=("subagents",))


# Reads boto3's description of S3, which is kept: here once in the process that forks, and not in each of its children.
S3LogStore("crashes", region_name="us-east-1")._bucket._client().close()


def open_bucket(folder, endpoint_url):
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
