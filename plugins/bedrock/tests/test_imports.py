"""What importing and calling load: boto3 only when it is needed, and nothing beside what it needs itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, json, sys, threading
from ropewalk import ModelRequest
from ropewalk_testing.servers import BedrockServer

async def nothing(): pass
asyncio.run(nothing())
request = ModelRequest(messages=[{{"role": "user", "content": [{{"text": "hi"}}]}}])
with BedrockServer(["hi"]) as server:
{body}
print(json.dumps({{"before": sorted(before), "after": sorted(sys.modules)}}))
"""

PLAIN = """
    before = set(sys.modules)
    import boto3
    client = boto3.Session().client("bedrock-runtime", region_name="us-west-2", endpoint_url=server.url)
    for event in client.converse_stream(modelId="m", messages=request.messages)["stream"]:
        pass
"""

OURS = """
    from ropewalk_bedrock import BedrockModel, BedrockPlugin
    model = BedrockModel(endpoint_url=server.url)
    BedrockPlugin().provide_model("bedrock")
    before = set(sys.modules)

    async def call():
        return [event async for event in model.stream(request)]

    assert asyncio.run(call())
"""


def loaded(body):
    program = PROGRAM.format(body=body)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return {key: set(names) for key, names in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def ours():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "k")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        return loaded(OURS)


def test_importing_the_plugin_and_making_a_model_loads_no_client_library(ours):
    heavy = {"boto3", "botocore", "urllib3", "s3transfer", "litellm"}

    assert {name for name in ours["before"] if name.partition(".")[0] in heavy} == set()


def test_a_first_call_loads_nothing_beyond_boto3s_own_and_the_plugins_modules(ours):
    plain = loaded(PLAIN)
    new = ours["after"] - ours["before"]

    assert "boto3" in new
    extra = {name for name in new - plain["after"] if not name.startswith("ropewalk_bedrock")}
    assert extra == set()
