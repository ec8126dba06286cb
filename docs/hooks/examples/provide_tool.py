"""The hook `provide_tool`."""

from __future__ import annotations

from ropewalk import Agent, hookimpl, tool
from ropewalk_testing import ScriptedModel


class Catalog:
    """Entries of `tools=` of the form `math:<name>`."""

    name = "catalog"

    @hookimpl
    def provide_tool(self, spec):
        if spec != "math:double":
            return None

        @tool
        def double(number: int) -> int:
            """Doubles a number."""
            return number * 2

        return double


agent = Agent(model=ScriptedModel(["Hello."]), tools=["math:double"], plugins=[Catalog()], callback_handler=None)
assert agent.tool_names == ["double"]
