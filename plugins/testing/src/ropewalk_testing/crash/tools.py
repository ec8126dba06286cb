"""The tools of the scenario: each leaves a trace on disk, so that running one twice shows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ropewalk import ToolCall, ToolResult, ToolSpec
    from ropewalk.types import Effect, OnUnknown
    from ropewalk_testing.crash.effects import EffectJournal

NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}


class JournalTool:
    """A tool that notes in the journal that it ran.

    Attributes:
        tool_name: Its name.
        effect: What running it twice does.
        on_unknown: What becomes of a call that was never seen to end; None leaves it to `effect`.
    """

    def __init__(
        self,
        name: str,
        effect: Effect,
        journal: EffectJournal,
        *,
        on_unknown: OnUnknown | None = None,
        question: str | None = None,
    ) -> None:
        """Makes the tool.

        Args:
            name: Its name.
            effect: What running it twice does.
            journal: Where it notes that it ran.
            on_unknown: What becomes of a call that was never seen to end.
            question: Asks the caller of the agent under this name before it does anything.
        """
        self.tool_name = name
        self.effect = effect
        self.on_unknown = on_unknown
        self._journal = journal
        self._question = question

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model is told."""
        return {"name": self.tool_name, "description": "Leaves a trace", "inputSchema": {"json": NOTHING}}

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Asks if it has to, leaves its trace, and changes the agent's state if it may do so twice."""
        use_id = call.tool_use["toolUseId"]
        if self._question is not None:
            answer = call.interrupt(self._question, {"tool": self.tool_name})
            if answer is not True:
                return {"toolUseId": use_id, "status": "error", "content": [{"text": f"not allowed: {answer!r}"}]}

        await asyncio.sleep(0)  # so that calls that run at once take turns
        self._journal.note(self.tool_name, use_id, call.idempotency_key, self.effect)
        await asyncio.sleep(0)
        if self.effect != "irreversible":
            call.agent.state.set(use_id, self.tool_name)

        return {"toolUseId": use_id, "status": "success", "content": [{"text": f"{self.tool_name} ran for {use_id}"}]}
