"""The plugin that ends runs which have their output, and keeps the output model of those that pause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, final

from ropewalk import Suspend, current_run, hookimpl
from ropewalk.kits.calls.outcomes import Stop, ToolsOutcome
from ropewalk.tools import ToolBatch
from ropewalk_structured import keeping
from ropewalk_structured.engine import BESIDE, PROMPT, engine_of, target_in
from ropewalk_structured.prompt import prompt_of
from ropewalk_structured.session import Session, session_of

if TYPE_CHECKING:
    from ropewalk import Agent, AgentResult, Denied, Invocation


@final
class OutputStop:
    """Ends the run when there is an output, or when there were too many attempts at one, and keeps it over pauses.

    A plugin of its own because of its place, outside of everything: a run that is done has not run into a limit, and
    whichever hook pauses a run, its output model is not lost.
    """

    name = "structured-output-stop"
    order = -1_000_000

    @hookimpl
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Keeps what a paused run needs to go on, and forgets it when the run ends."""
        if BESIDE in invocation.options.given:
            return await call_next(invocation)

        paused = False
        try:
            result = await call_next(invocation)
            paused = current_run().paused is not None
        except Suspend:
            paused = True
            raise
        finally:
            if not paused:
                keeping.forget(current_run())
            elif keeping.kept(agent, current_run().id) is None:  # the engine was not reached
                self._keep(invocation, agent)

        return result

    def _keep(self, invocation: Invocation, agent: Agent) -> None:
        engine = engine_of(agent)
        target = target_in(invocation, agent) or (engine.target if engine is not None else None)
        if target is not None and engine is not None:
            run = current_run()
            prompt = invocation.options.given.get(PROMPT) or prompt_of(agent)
            keeping.remember(run, target)
            keeping.keep(run, Session(agent, target, prompt, engine.max_attempts))

    @hookimpl
    async def around_tools(
        self, batch: ToolBatch, call_next: Callable[[ToolBatch], Awaitable[ToolsOutcome]], agent: Agent
    ) -> ToolsOutcome:
        """Stops after the tools of the message that has filled the output model."""
        outcome = await call_next(batch)
        session = session_of(agent)
        if session is None or not session.filled or not isinstance(outcome, ToolsOutcome):
            return outcome

        return ToolsOutcome(outcome.results, outcome.end_turn, Stop("tool_use"))

    @hookimpl
    async def decide_stop(self, agent: Agent) -> Stop | None:
        """Ends the corrections when there were too many; stops when what came after the tools did not."""
        session = session_of(agent)
        if session is None:
            return None

        session.check()
        return Stop("tool_use") if session.filled else None
