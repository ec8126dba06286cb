"""The tool that stands for an output model while a call runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from ropewalk.tools import ToolCall
    from ropewalk.types import ToolResult, ToolSpec
    from ropewalk_structured.session import Session


@final
class OutputTool:
    """Validates what the model sends. It is never registered: calls get it on their way to the innermost step."""

    effect: Final = "pure"

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def tool_name(self) -> str:
        """The output model's name."""
        return self._session.target.name

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model is told."""
        return self._session.target.spec

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Answers with what is wrong, or that nothing is."""
        use = call.tool_use
        return self._session.hold(use["toolUseId"], use["input"])
