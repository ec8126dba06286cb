"""Agents on each wire of `provider_wires`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # provider_wires, stream_events: a test folder is on no path

from provider_wires import Bedrock, LiteLLM, Scripted


@pytest.fixture
def scripted(make_agent):
    return Scripted(make_agent)


@pytest.fixture(scope="session")
def boto_session():
    """One session for all clients, because each session reads boto3's description of the service anew."""
    boto3 = pytest.importorskip("boto3")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
            patch.delenv(name, raising=False)

        patch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
        yield boto3.Session(aws_access_key_id="k", aws_secret_access_key="s", region_name="us-west-2")


@pytest.fixture
def bedrock(make_agent, boto_session):
    pytest.importorskip("ropewalk_bedrock")
    with ExitStack() as stack:
        yield Bedrock(make_agent, stack, boto_session)


@pytest.fixture
def litellm(make_agent):
    pytest.importorskip("ropewalk_litellm")
    with ExitStack() as stack:
        yield LiteLLM(make_agent, stack)


@pytest.fixture(params=["scripted", "bedrock", "litellm"])
def provider(request):
    """One wire; its `make(turns, **parameters)` gives an agent, and who takes its requests."""
    return request.getfixturevalue(request.param)
