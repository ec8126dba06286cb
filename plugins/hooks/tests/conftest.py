from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_testing import ScriptedModel


class Add:
    """A tool object, so that no plugin is needed for it."""

    tool_name = "add"
    tool_spec = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        numbers = call.tool_use["input"].values()
        text = str(sum(numbers))
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


@pytest.fixture
def make_agent():
    """Builds an agent that can add: `make_agent("Hello.", hooks=[...])`."""

    def make(*turns, tools=(), **parameters):
        return Agent(model=ScriptedModel(turns), tools=[Add(), *tools], **parameters)

    return make
