"""The hook `intervene`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl, tool
from ropewalk.kits.calls.verdicts import Refuse, Replace
from ropewalk_testing import ScriptedModel, use


@tool
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is gone"


class Careful:
    """Looks at what will really run. As a policy, named in ROPEWALK_POLICY, no agent can leave it out."""

    name = "careful"

    @hookimpl
    async def intervene(self, moment, subject):
        if moment != "before_tool_call":
            return None  # let it pass

        path = subject.tool_use["input"]["path"]
        if path.startswith("/"):
            return Refuse("only files of this folder")

        return Replace(subject.with_input({"path": f"./{path}"}))


calls = [use("delete", {"path": "/etc/passwd"}), use("delete", {"path": "notes.txt"})]
agent = Agent(model=ScriptedModel([calls, "Done."]), tools=[delete], plugins=[Careful()], callback_handler=None)
agent("Clean up.")
assert [block["toolResult"]["content"][0]["text"] for block in agent.messages[2]["content"]] == [
    "DENIED: only files of this folder",
    "./notes.txt is gone",
]
