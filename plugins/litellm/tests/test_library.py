from __future__ import annotations

import json
import os
import subprocess
import sys

from ropewalk_testing.servers import OpenAIServer

SCRIPT = """
import asyncio, json, os, sys
from ropewalk import Agent
from ropewalk.model import ModelRequest
import ropewalk_litellm
from ropewalk_litellm.plugin import LiteLLMPlugin

base = sys.argv[1]
model = LiteLLMPlugin().provide_model("litellm:openai/m")
model.update_config(client_args={"api_base": base, "api_key": "k"})
told = {"imported": sorted({name.partition(".")[0] for name in sys.modules}), "window": model.context_window}

async def play():
    messages = [{"role": "user", "content": [{"text": "hi"}]}]
    return [event async for event in model.stream(ModelRequest(messages=messages))]

async def bare():
    import litellm

    answer = await litellm.acompletion(
        model="openai/m", messages=[{"role": "user", "content": "hi"}], stream=True,
        stream_options={"include_usage": True}, api_base=base, api_key="k", num_retries=0, max_retries=0,
    )
    async for _ in answer:
        pass

    await litellm.close_litellm_async_clients()

from ropewalk_litellm.library import litellm
litellm()
told["environment"] = os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP")
asyncio.run(bare())
before = set(sys.modules)
events = asyncio.run(play())
told["more"] = sorted(set(sys.modules) - before)
told["events"] = len(events)

try:
    asyncio.run(play())  # the script is exhausted
except Exception as error:
    told["error"] = type(error).__name__

print(json.dumps(told))
"""


def test_the_import_is_light_the_first_call_adds_nothing_and_all_is_quiet():
    """One child process for all of it: importing LiteLLM takes seconds."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    with OpenAIServer(["bare", "ours"]) as server:
        child = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, server.api_base],
            capture_output=True, text=True, timeout=120, check=False, env=environment,
        )  # fmt: skip

    assert child.returncode == 0, child.stderr
    assert child.stderr == "", "something was printed, or a connection was left open"
    told = json.loads(child.stdout)  # and nothing else was printed
    assert not {"litellm", "openai", "httpx", "aiohttp"} & set(told["imported"])
    assert told["window"] is None
    assert told["environment"] is None
    assert [name for name in told["more"] if not name.startswith("ropewalk")] == []
    assert told["events"] > 4
    assert told["error"] == "ModelRequestError"


def test_what_the_user_has_set_stays(monkeypatch):
    from ropewalk_litellm.library import _local_data

    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "False")
    monkeypatch.delenv("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", raising=False)
    with _local_data():
        assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "False"
        assert os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] == "True"

    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "False"
    assert "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS" not in os.environ


async def test_released_clients_are_opened_again(served, ask, collect):
    import asyncio

    from ropewalk_litellm import release_clients

    model, server = served(["one", "two"])
    await collect(model, ask())
    await asyncio.to_thread(release_clients)
    await collect(model, ask())

    assert server.connections == 2
