"""What the tests of the views share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result

from ropewalk import Agent
from ropewalk.kits.sessions import LogKey
from ropewalk_cli.main import program
from ropewalk_session_file import FileLogStore, FileSessionManager
from ropewalk_testing import ScriptedModel, turn, use


class Add:
    tool_name = "add"
    tool_spec: ClassVar = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}

    def __init__(self, ran):
        self.ran = ran

    async def invoke(self, call):
        self.ran.append(call.tool_use["toolUseId"])
        numbers = call.tool_use["input"]
        text = str(numbers["a"] + numbers["b"])
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


class Ask(Add):
    tool_name = "ask"
    tool_spec: ClassVar = {"name": "ask", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        text = str(call.interrupt("sure", "Really?"))
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


@dataclass
class Kept:
    """Sessions in a folder, and the program that looks at them."""

    folder: Path
    ran: list[str] = field(default_factory=list)

    def run(self, *arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(program, list(arguments), input=stdin, env={"ROPEWALK_STORE": str(self.folder)})

    def json(self, *arguments: str):
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def talk(self, session: str, *script, prompt: str | None = "Go.", agent_id: str | None = None, **options) -> Agent:
        agent = Agent(
            model=ScriptedModel(list(script)),
            tools=[Add(self.ran), Ask(self.ran)],
            session_manager=FileSessionManager(session, storage_dir=str(self.folder)),
            callback_handler=None,
            agent_id=agent_id,
            **options,
        )
        agent(prompt)
        return agent

    @property
    def store(self) -> FileLogStore:
        return FileLogStore(self.folder)

    def records(self, session: str, agent_id: str = "default"):
        return self.store.read(LogKey(session, agent_id)).records


@pytest.fixture
def kept(tmp_path, ropewalk_env):
    """An empty store, and a current folder without settings."""
    return Kept(tmp_path / "kept")


@pytest.fixture
def ada(kept):
    """Sessions of which `ada` has two runs, the first with a tool."""
    kept.talk("ada", ["I add.", use("add", {"a": 1, "b": 2}, id="A")], turn("It is 3.", usage=(7, 3)), prompt="Add.")
    kept.talk("ada", "Bye.", prompt="Thanks.")
    return kept
