"""Tool names that a provider will not take (scenario A18)."""

from __future__ import annotations

import re

import pytest

from ropewalk import tool
from ropewalk.errors import ToolDefinitionError
from ropewalk_testing import assert_valid_history, use

LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Foreign:
    """A tool of someone else's making, under any name."""

    def __init__(self, name):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": "Does.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "done"}]}


BAD_NAMES = ["admin.tools.list", "has space", "名前", "a$b", "", "x" * 65, "a/b", "line\n"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_an_illegal_name_is_refused_at_registration(make_agent, name):
    """Scenario A18."""
    with pytest.raises(ToolDefinitionError) as caught:
        make_agent(["never"], tools=[Foreign(name)])

    assert repr(name)[1:-1][:40] in str(caught.value)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_an_illegal_name_of_a_decorated_tool_is_refused(make_agent, name):
    """Scenario A18."""

    def refused():
        @tool(name=name)
        def body() -> str:
            """Does."""
            return "x"

        make_agent(["never"], tools=[body])

    with pytest.raises(ToolDefinitionError):
        refused()


def test_two_long_names_with_one_beginning_are_refused_not_cut(make_agent):
    """Scenario A18."""
    with pytest.raises(ToolDefinitionError):
        make_agent(["never"], tools=[Foreign("n" * 64 + "_first"), Foreign("n" * 64 + "_other")])


def test_names_at_the_limit_are_taken(ask, make_agent, tool_results):
    """Scenario A18."""
    name = "n" * 64
    agent, _ = make_agent([use(name, {}), "ok"], tools=[Foreign(name)])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": "done"}]


@pytest.mark.parametrize("asked", ["bad name!", "名前", "x" * 80, "a.b"])
def test_an_illegal_name_from_the_model_is_an_error_and_is_sent_back_legally(ask, make_agent, tool_results, asked):
    """Scenario A18."""
    agent, model = make_agent([[use(asked, {"k": 1}, id="A"), use("good", {}, id="B")], "ok"], tools=[Foreign("good")])

    ask(agent, "go")

    assert [(r["toolUseId"], r["status"]) for r in tool_results(agent.messages)] == [("A", "error"), ("B", "success")]
    sent = [block["toolUse"]["name"] for block in model.requests[1].messages[1]["content"]]
    assert all(LEGAL_NAME.fullmatch(name) for name in sent)
    assert sent[1] == "good"
    assert_valid_history(model.requests[1].messages)
