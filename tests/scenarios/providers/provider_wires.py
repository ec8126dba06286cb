"""One scenario over several wires: scripted events, Bedrock through boto3, OpenAI's form through LiteLLM.

The first two speak Converse, so they share their streams.
"""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from ropewalk_testing import turn
from ropewalk_testing.servers import BedrockServer, OpenAIServer

over_http = pytest.mark.parametrize("provider", ["bedrock", "litellm"], indirect=True)
"""For a test that needs a server: runs with the fixture `provider` once for each."""


def on_wires(converse, chunks):
    """Parametrizes a test with `provider` and `events`: tables of streams by name, one for each form."""
    tables = {"scripted": converse, "bedrock": converse, "litellm": chunks}
    cases = [
        pytest.param(wire, events, id=f"{wire}-{name}")
        for wire, table in tables.items()
        for name, events in table.items()
    ]
    return pytest.mark.parametrize(("provider", "events"), cases, indirect=["provider"])


def uses_of(message):
    """The tool uses of a message."""
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]


class Scripted:
    """No wire: the events reach the kernel as they are."""

    def __init__(self, make_agent):
        self.make_agent = make_agent

    def make(self, turns, **parameters):
        """An agent, and who takes its requests."""
        return self.make_agent(turns, **parameters)

    def stream(self, events):
        """A turn that streams just these events."""
        return turn(raw=events)

    def sent(self, model, number=1):
        """The messages of a request."""
        return model.requests[number].messages

    def sent_calls(self, model):
        """(id, name, arguments) of each tool call that the second request sends back."""
        return [(u["toolUseId"], u["name"], u["input"]) for u in uses_of(self.sent(model)[1])]

    def sent_answers(self, model):
        """(id, whether it is an error, text) of each result that the second request brings."""
        results = [block["toolResult"] for block in self.sent(model)[2]["content"]]
        return [(r["toolUseId"], r["status"] == "error", r["content"][0]["text"]) for r in results]


class Bedrock(Scripted):
    """The real boto3, and a server that speaks Converse."""

    codes: ClassVar = {
        "throttled": "ThrottlingException",
        "invalid": "ValidationException",
        "invalid, in the stream": "validationException",
        "busy": "ServiceUnavailableException",
    }

    def __init__(self, make_agent, stack, session):
        super().__init__(make_agent)
        self.stack, self.session = stack, session

    def make(self, turns, settings=None, patience=None, **parameters):
        from botocore.config import Config

        from ropewalk_bedrock import BedrockModel

        server = self.stack.enter_context(BedrockServer(turns))
        reach = {"endpoint_url": server.url, "boto_session": self.session}
        if patience is not None:
            reach["boto_client_config"] = Config(read_timeout=patience)

        model = BedrockModel(**reach, **(settings or {}))
        self.stack.callback(model.close)
        agent, _ = self.make_agent(model, **parameters)
        return agent, server

    def stream(self, events):
        return turn(raw=[pair for event in events for pair in event.items()])

    def sent(self, server, number=1):
        return server.requests[number].body["messages"]


class LiteLLM(Scripted):
    """The real LiteLLM, and a server that speaks OpenAI's chat completions."""

    codes: ClassVar = {
        "throttled": "rate_limit_exceeded",
        "invalid": "invalid_request_error",
        "invalid, in the stream": "invalid_request_error",
        "busy": "overloaded_error",
    }

    def __init__(self, make_agent, stack):
        super().__init__(make_agent)
        self.stack = stack

    def make(self, turns, settings=None, patience=10, **parameters):
        from ropewalk_litellm import LiteLLMModel

        server = self.stack.enter_context(OpenAIServer(turns))
        reach = {"api_base": server.api_base, "api_key": "k", "timeout": patience}
        agent, _ = self.make_agent(LiteLLMModel("openai/scripted", client_args=reach, **(settings or {})), **parameters)
        return agent, server

    def sent(self, server, number=1):
        return server.requests[number].body["messages"]

    def sent_calls(self, server):
        calls = self.sent(server)[1]["tool_calls"]
        return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]

    def sent_answers(self, server):
        results = [message for message in self.sent(server) if message["role"] == "tool"]
        return [(each["tool_call_id"], each["content"].startswith("Error"), each["content"]) for each in results]
