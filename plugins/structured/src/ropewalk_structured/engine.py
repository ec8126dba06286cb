"""The plugins in the loop. Agents have them only when they are asked for structured output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, final

from ropewalk import Suspend, current_run, hookimpl
from ropewalk.kits.calls.outcomes import ModelOutcome, ToolsOutcome
from ropewalk.tools import ToolBatch, ToolCall
from ropewalk_structured import keeping
from ropewalk_structured.prompt import prompt_of
from ropewalk_structured.session import Session, current, session_of
from ropewalk_structured.target import target_of
from ropewalk_structured.tool import OutputTool

if TYPE_CHECKING:
    from ropewalk import Agent, AgentResult, CallOptions, Denied, Invocation, ModelRequest, Retry
    from ropewalk.types import ContentBlock, Message, ToolResult
    from ropewalk_structured.target import Target

MODEL: Final = "structured_output_model"
PROMPT: Final = "structured_output_prompt"
BESIDE: Final = "structured_output_beside"
"""Marks the options of a question beside the conversation."""

_FINAL: Final = frozenset({"content_filtered", "guardrail_intervened"})
"""Stop reasons after which the model is not asked again: what it refuses to say it refuses as an object too."""


@final
class StructuredOutput:
    """Offers the output model as a tool, takes what the model fills it with, and asks when the model forgets it.

    Its chain links stand innermost: a run that a hook repeats starts with nothing filled, and what other plugins
    change in a request stays.

    Args:
        max_attempts: How many answers may be wrong.
        target: The agent's own output model, for calls that name none.
    """

    name = "structured-output"

    def __init__(self, max_attempts: int, target: Target | None = None) -> None:
        self.max_attempts: Final = max_attempts
        self.target: Final = target

    @hookimpl
    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Refuses the agent's output model when a tool bears its name."""
        if self.target is not None and MODEL not in options.given:
            check_free(self.target, agent)

    @hookimpl(trylast=True)
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Opens the session, and puts the output into the result."""
        session = self._opened(invocation, agent)
        if session is None:
            with current(None):
                return await call_next(invocation)

        with current(session):
            try:
                result = await call_next(invocation)
            except Suspend:
                keeping.keep(current_run(), session)
                raise

        if BESIDE not in invocation.options.given:
            keeping.keep(current_run(), session)  # a hook further out may still pause the run

        if session.filled and hasattr(result, "structured_output"):
            result.structured_output = session.value

        return result

    def _opened(self, invocation: Invocation, agent: Agent) -> Session | None:
        given = invocation.options.given
        if BESIDE in given:
            return None

        target = target_in(invocation, agent) or self.target
        if target is None:
            return None

        run = current_run()
        keeping.remember(run, target)
        session = Session(agent, target, given.get(PROMPT) or prompt_of(agent), self.max_attempts)
        kept = keeping.kept(agent, run.id) if run.resumed is not None else None  # a repetition is a new run
        if kept is not None:
            session.prompt = given.get(PROMPT) or kept["prompt"]
            session.restore(kept)

        keeping.keep(run, session)  # if the process ends here, its successor knows that there is an output model
        return session

    @hookimpl(trylast=True)
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> ModelOutcome | Retry:
        """Puts the output model into the request; calls beside the conversation, such as summaries, are left alone."""
        session = session_of(agent)
        if session is None or request.purpose != session.purpose:
            return await call_next(request)

        native = session.forced and getattr(agent.model, "supports_output_schema", False) is True
        outcome = await call_next(session.request(request, native=native))
        if isinstance(outcome, ModelOutcome):
            session.stop_reason = outcome.stop_reason

        return outcome

    @hookimpl(trylast=True)
    async def around_tools(
        self, batch: ToolBatch, call_next: Callable[[ToolBatch], Awaitable[ToolsOutcome]], agent: Agent
    ) -> ToolsOutcome:
        """Gives calls of the output model their tool, which runs as any other: hooks, gates, log and metrics apply.

        Once every tool of the message has answered, the first valid call is taken.
        """
        session = session_of(agent)
        if session is None or session.filled:
            return await call_next(batch)

        calls = tuple(_equipped(call, session) for call in batch.calls)
        outcome = await call_next(ToolBatch(calls, batch.invocation_state))
        if isinstance(outcome, ToolsOutcome) and not current_run().interrupts:  # of anything else the kernel complains
            session.settle([call.tool_use for call in calls], outcome.results)

        return outcome

    @hookimpl(trylast=True)
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """Gives the tool to a call that a hook has renamed."""
        session = session_of(agent)
        return await call_next(call if session is None or call.tool is not None else _equipped(call, session))

    @hookimpl(trylast=True)
    async def decide_continue(self, message: Message, agent: Agent) -> list[ContentBlock] | None:
        """Asks for the output when the model has ended its turn without it."""
        session = session_of(agent)
        if session is None or session.filled or session.stop_reason in _FINAL:
            return None

        if not session.forced:
            session.forced = True
            return [{"text": session.prompt}]

        problem = session.take_text(message)
        return None if problem is None else [{"text": problem}]


def target_in(invocation: Invocation, agent: Agent) -> Target | None:
    """The output model that the caller gave, now or before the run was paused."""
    model = invocation.options.given.get(MODEL)
    if model is not None:
        return target_of(model)

    return keeping.remembered(agent, current_run().id) if invocation.resumed else None


def _equipped(call: ToolCall, session: Session) -> ToolCall:
    return call.with_tool(OutputTool(session)) if call.tool_use["name"] == session.target.name else call


def check_free(target: Target, agent: Agent) -> None:
    """Refuses an output model that has the name of a tool.

    Raises:
        ValueError: It has.
    """
    taken = agent.tool_registry.find(target.name)
    if taken is not None:
        raise ValueError(
            f"Tool '{taken.tool_name}' already exists, and the output model {target.name!r} is offered as a tool of "
            "that name: rename one of the two"
        )


def engine_of(agent: Agent) -> StructuredOutput | None:
    """The agent's engine, if it has one."""
    return next((plugin for plugin in agent.hooks.plugins if isinstance(plugin, StructuredOutput)), None)
