from __future__ import annotations

import threading

import pytest

from ropewalk_bedrock import client
from ropewalk_bedrock.client import ClientSource


def test_a_client_is_made_once_however_many_ask():
    source, clients = ClientSource(), []
    threads = [threading.Thread(target=lambda: clients.append(source.get())) for _ in range(8)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join()

    assert len(clients) == 8
    assert len(set(map(id, clients))) == 1


def test_sources_share_the_description_of_the_service_and_nothing_else():
    first, second = ClientSource(api_key="a").get(), ClientSource().get()

    assert first is not second
    assert first.meta.config.signature_version == "bearer"
    assert second.meta.config.signature_version != "bearer"
    for loader in client._loaders.values():
        assert len(loader.search_paths) == len(set(loader.search_paths))


def test_the_region_is_the_callers_or_the_environments_or_the_default(monkeypatch):
    assert ClientSource().get().meta.region_name == "us-west-2"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert ClientSource().get().meta.region_name == "eu-north-1"
    assert ClientSource(region_name="sa-east-1").get().meta.region_name == "sa-east-1"


def test_boto3_repeats_nothing_and_waits_two_minutes_by_default():
    config = ClientSource().get().meta.config

    assert config.retries["total_max_attempts"] == 1
    assert config.read_timeout == 120


def test_configuration_of_the_callers_wins():
    from botocore.config import Config

    given = Config(read_timeout=5, retries={"total_max_attempts": 3, "mode": "standard"})
    config = ClientSource(config=given).get().meta.config

    assert (config.read_timeout, config.retries["total_max_attempts"]) == (5, 3)
    assert config.connect_timeout == 10


def test_closing_what_was_never_opened_is_nothing():
    ClientSource().close()


def test_a_setting_that_boto3_refuses_is_an_error_each_time():
    source = ClientSource(region_name="no region!")
    for _ in range(2):
        with pytest.raises(ValueError, match="no region!"):
            source.get()
