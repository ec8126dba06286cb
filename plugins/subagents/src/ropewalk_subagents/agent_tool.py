"""The tool that an agent is for another agent."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final, final

from ropewalk import Agent, ConcurrencyException, ToolDefinitionError
from ropewalk.agent_base import AgentBase
from ropewalk.kits.suspension import ResumeError
from ropewalk.tools import ToolCall, error_result
from ropewalk.types import AgentInput, Effect, OnUnknown, ToolResult, ToolSpec
from ropewalk_subagents.answers import tool_result
from ropewalk_subagents.driving import drive
from ropewalk_subagents.line import WouldNeverEndError, line_of
from ropewalk_subagents.logged import ChangedError, Place, mark, place_of
from ropewalk_subagents.naming import checked_name, legal_name
from ropewalk_subagents.nesting import above, outermost, outermost_of, with_caller
from ropewalk_subagents.pausing import Kept, MovedOnError, answers_to, kept_of, let_first, suspend_of, waits

_log = logging.getLogger("ropewalk.subagents")
_INPUT: Final = "input"


@final
class AgentTool:
    """An agent that answers the tool calls of others.

    By default each call is answered by a fresh copy of the agent, with the messages and the state that it was made
    with: calls do not know of one another, and may run at once. With `preserve_context` the agent itself answers, one
    call after the other, and its conversation goes on.

    Attributes:
        tool_name: The name that models use.
        tool_type: `"agent"`.
        effect: `"irreversible"`: what its tools do, nobody here knows.
        on_unknown: `"resume"`: after a crash it goes on where the log has it.
        agent: The agent.
        preserve_context: Whether its conversation goes on from call to call.
    """

    tool_type: Final = "agent"
    effect: Final[Effect] = "irreversible"
    on_unknown: Final[OnUnknown] = "resume"

    def __init__(
        self,
        agent: Agent,
        *,
        name: str | None = None,
        description: str | None = None,
        preserve_context: bool = False,
        max_depth: int = 8,
    ) -> None:
        """Makes the tool.

        Args:
            agent: The agent.
            name: Default: the agent's name, made legal.
            description: Default: the agent's description, or a sentence that names it.
            preserve_context: Whether the conversation goes on from call to call.
            max_depth: How many sub-agents may be nested, this one included.

        Raises:
            ToolDefinitionError: The name is illegal.
            ValueError: The agent has a session manager, and fresh copies of it would all write to one session.
        """
        if not preserve_context and getattr(agent, "session_manager", None) is not None:
            raise ToolDefinitionError(
                f"agent {agent.name!r} has a session manager, and a sub-agent starts anew with each call: "
                "use as_tool(preserve_context=True), or an agent without a session"
            )

        self.agent = agent
        self.tool_name = legal_name(agent.name) if name is None else checked_name(name)
        self.preserve_context = preserve_context
        self._description = description
        self._max_depth = max_depth

    @property
    def tool_spec(self) -> ToolSpec:
        """What models are told."""
        fallback = f"Use the {self.agent.name} agent as a tool: tell it in plain words what you need"
        return {
            "name": self.tool_name,
            "description": self._description or self.agent.description or fallback,
            "inputSchema": {
                "json": {
                    "type": "object",
                    "properties": {_INPUT: {"type": "string", "description": "What the agent is asked or told to do"}},
                    "required": [_INPUT],
                }
            },
        }

    def __repr__(self) -> str:
        return f"<tool {self.tool_name!r}: agent {self.agent.name!r}>"

    async def invoke(self, call: ToolCall) -> ToolResult:
        """Lets the agent answer one call. What goes wrong in it becomes an error result.

        Raises:
            CancelledError: The caller was cancelled; the agent has ended by then.
            Suspend: The agent waits for answers, which the caller's caller gives.
        """
        use_id = call.tool_use["toolUseId"]
        prompt = call.tool_use["input"].get(_INPUT)
        if not isinstance(prompt, str):
            return error_result(use_id, f"Error: {self.tool_name} takes one argument, {_INPUT!r}, which is a text")

        callers = with_caller(call.agent)
        if len(callers) > self._max_depth:
            return error_result(
                use_id,
                f"Error: agent {self.agent.name!r} was not asked: sub-agents are nested {self._max_depth} deep "
                "already, which is the limit; answer without it",
            )

        tokens = above.set(callers), outermost.set(outermost_of(call))
        try:
            return await self._answer(prompt, call, callers)
        except Exception as error:  # noqa: BLE001 - the caller's model is told, and may do without
            _log.debug("sub-agent %s raised", self.agent.name, exc_info=True)
            return error_result(use_id, f"Error: {_told(error, self.agent.name)}")
        finally:
            above.reset(tokens[0])
            outermost.reset(tokens[1])

    async def _answer(self, prompt: str, call: ToolCall, callers: tuple[int, ...]) -> ToolResult:
        use_id, name = call.tool_use["toolUseId"], self.agent.name
        kept = kept_of(call)
        if kept is not None and not kept.answers:
            raise kept.suspend()

        if self.preserve_context:
            await let_first(self.agent, call)

        async with self._ready(callers) as (child, cancel):
            if call.cancel_signal.is_set():  # while the call stood in the line
                return error_result(use_id, f"Agent {name!r} was not asked: the run was cancelled before")

            with call.nesting(child) as known:
                place = place_of(child, call, known, kept=self.preserve_context)
                if isinstance(place, dict):
                    return place

                if place == "anew" and kept is None and waits(child):
                    return error_result(
                        use_id,
                        f"Error: Agent {name!r} waits for an answer to what it has asked before; call it after that",
                    )

                given = _given(prompt, child, call, place, kept)
                if given is not None:
                    mark(child, call, resumed=child.suspension is not None)

                result = await drive(child, given, call, cancel)
                while result.stop_reason == "checkpoint":  # which are for callers who keep them
                    result = await drive(child, None, call, cancel)

                if result.stop_reason == "interrupt":
                    raise suspend_of(child, call)

                return tool_result(result, name, use_id)

    @contextlib.asynccontextmanager
    async def _ready(self, callers: tuple[int, ...]) -> AsyncIterator[tuple[Agent, Callable[[], None]]]:
        """The agent that answers, and what cancels its run."""
        agent = self.agent
        if self.preserve_context:
            async with line_of(agent).turn(agent, callers):
                # not `agent.cancel`: between runs that would cancel the next one
                yield agent, lambda: AgentBase.cancel(agent)

            return

        agent.resolve_model()  # once, and not once per copy
        child = agent.clone()
        try:
            yield child, child.cancel
        finally:
            await _close(child)


def _given(prompt: str, child: Agent, call: ToolCall, place: Place, kept: Kept | None) -> AgentInput:
    """What the agent is called with: its prompt, the answers it waits for, or None to go on.

    Raises:
        Suspend: It waits for answers that have not come.
        MovedOnError: It does not wait any more for the answers that have come.
    """
    if place == "broken_off":
        return None

    if place == "waits":
        answers = answers_to(child, call)
        if not answers:
            raise suspend_of(child, call)

        return answers

    if kept is None:
        return prompt

    kept.into(child)
    return kept.answers


def _told(error: Exception, name: str) -> str:
    """What a caller's model is told when an agent did not answer."""
    if isinstance(error, ConcurrencyException):
        return f"Agent {name!r} is already processing a request"

    if isinstance(error, WouldNeverEndError):
        return f"Agent {name!r} is already processing a request, which waits for this very call; answer without it"

    if isinstance(error, MovedOnError | ResumeError):
        _log.warning("the answer for sub-agent %s is lost: %s", name, error)
        return f"agent {name!r} could not go on with the answer: {error}"

    if isinstance(error, ChangedError):
        _log.warning("the call of sub-agent %s that a process ended in is lost: %s", name, error)
        return f"agent {name!r} could not go on after its process had ended: {error}"

    return f"agent {name!r} failed: {type(error).__name__} - {error}"


async def _close(child: Agent) -> None:
    try:
        await child.aclose()
    except Exception:  # noqa: BLE001 - its answer is there all the same
        _log.exception("cleaning up after a call of agent %s failed", child.name)
