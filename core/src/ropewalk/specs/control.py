"""Hooks that decide whether a call is admitted and when a run stops or goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.markers import hookspec

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.invocation import CallOptions, Cycle, Denied, Invocation
    from ropewalk.kits.calls.outcomes import Stop
    from ropewalk.kits.calls.verdicts import Moment, Verdict
    from ropewalk.kits.result import AgentResult
    from ropewalk.types import ContentBlock, Message


class ControlSpecs(Protocol):
    """Admission, the invocation as a whole, stopping and going on."""

    @hookspec
    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Checks what the caller gave, before anything is done. Raises TypeError or ValueError to refuse."""

    @hookspec(firstresult=True)
    async def admit(self, options: CallOptions, agent: Agent) -> Any:
        """Asked when the agent is busy: whether this call may run all the same, and how.

        Returns:
            An `AgentResult` to answer at once (a repeated call), `ropewalk.kits.calls.invocation.REENTRANT` to run the
            call on a branch of the history, or None: the call is refused with `ConcurrencyException`.
        """

    @hookspec
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Wraps one whole call of the agent.

        Return `Denied(text)` without calling on to refuse it: nothing is stored.
        """

    @hookspec
    async def intervene(self, moment: Moment, subject: Any, agent: Agent) -> Verdict | None:
        """Asked at the gates around invocations, model calls and tools, in the innermost step.

        Before something happens, normal plugins are asked first and policies last, on the very subject that will run;
        afterwards policies are asked first, and once more when a hook changed what will be stored. The first refusal
        ends the questions. An error stops the run; a policy that does not answer within its `time_limit` is an error.

        Args:
            moment: before_invocation, before_model_call, after_model_call, before_tool_call or after_tool_call.
            subject: Invocation, ModelRequest, ModelOutcome, ToolCall (judge its `tool`), ToolResult; read only.
            agent: The agent that runs.

        Returns:
            `Refuse(reason)`, `Replace(subject)`, `Guide(feedback)` at the gates of the model, or None to let it pass.
        """

    @hookspec(firstresult=True)
    async def decide_stop(self, cycle: Cycle, agent: Agent) -> Stop | None:
        """Asked at the top of each cycle, before the model is called: whether to stop here.

        Args:
            cycle: Which one, what the caller gave, and what the invocation has cost so far.
            agent: The agent that runs.
        """

    @hookspec(firstresult=True)
    async def decide_continue(self, message: Message, agent: Agent) -> list[ContentBlock] | None:
        """Asked when the model has ended its turn.

        Returns:
            Blocks of a user message with which the run goes on, or None to let it end.
        """
