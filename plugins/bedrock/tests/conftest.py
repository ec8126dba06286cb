from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ropewalk import ModelRequest
from ropewalk.kits.messages.assembly import Assembly
from ropewalk_bedrock import BedrockModel
from ropewalk_testing.servers import BedrockServer

CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1:0"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of nobody, and nothing of the machine's own configuration."""
    for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")


@pytest.fixture
def bedrock() -> Iterator[Callable[..., tuple[BedrockModel, BedrockServer]]]:
    """Starts a server with a script and makes a model that asks it: `bedrock([turns], **settings)`."""
    with ExitStack() as stack:

        def make(script: Any = (), *, token_count: Any = 42, **settings: Any) -> tuple[BedrockModel, BedrockServer]:
            server = stack.enter_context(BedrockServer(script, token_count=token_count))
            model = BedrockModel(endpoint_url=server.url, **settings)
            stack.callback(model.close)
            return model, server

        yield make


@pytest.fixture
def request_of() -> Callable[..., ModelRequest]:
    """Makes a request of (role, block ...) tuples or texts of the user."""

    def make(*turns: Any, **fields: Any) -> ModelRequest:
        messages: list[Any] = []
        for turn in turns or ("Hi!",):
            role, *content = ("user", {"text": turn}) if isinstance(turn, str) else turn
            messages.append({"role": role, "content": content})

        return ModelRequest(messages=messages, **fields)

    return make


@pytest.fixture
def drain() -> Callable[..., Any]:
    """Reads a model's whole stream."""

    async def read(model: BedrockModel, request: ModelRequest) -> list[dict[str, Any]]:
        return [event async for event in model.stream(request)]

    return read


@pytest.fixture
def outcome() -> Callable[..., Any]:
    """Reads a model's whole stream and puts the answer together."""

    async def read(model: BedrockModel, request: ModelRequest) -> Any:
        assembly = Assembly()
        async for event in model.stream(request):
            assembly.feed(event)

        return assembly.finish(lambda use_id, _: use_id)

    return read


@pytest.fixture
def spec() -> Callable[..., Any]:
    """Makes a tool spec."""

    def make(name: str = "add", description: str = "Adds.", **schema: Any) -> Any:
        return {"name": name, "description": description, "inputSchema": {"json": schema or {"type": "object"}}}

    return make
