"""Dispatches lifecycle events from inside the kernel's chains. An agent has this plugin from its first callback on."""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final
from weakref import ref

from ropewalk import current_run, hookimpl
from ropewalk.errors import InvalidPromptError
from ropewalk.kits.calls.copies import plain_copy
from ropewalk.kits.calls.invocation import Denied, Invocation
from ropewalk.kits.calls.outcomes import ModelOutcome, Retry, ToolsOutcome
from ropewalk.kits.events import MessageAdded
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.lifecycle import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    MessageAddedEvent,
    ModelStopResponse,
)
from ropewalk.kits.messages.estimate import estimate_tokens
from ropewalk.kits.messages.prompt import prompt_messages
from ropewalk.kits.messages.rules import checked_block
from ropewalk.kits.result import AgentResult
from ropewalk.kits.suspension import Suspend
from ropewalk.tools import error_result
from ropewalk_hooks.errors import HookError
from ropewalk_hooks.messages import Following, unseen_of
from ropewalk_hooks.registry import HookRegistry
from ropewalk_hooks.tool_calls import call_tool

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.events import Event
    from ropewalk.model import ModelRequest
    from ropewalk.tools import ToolBatch, ToolCall
    from ropewalk.types import AgentInput, ContentBlock, Message, ToolResult

logger = logging.getLogger("ropewalk.hooks")

INVOCATION_DENIED: Final = "invocation denied by hook"
MODEL_CALL_DENIED: Final = "model call denied by hook"
TOOLS_CANCELLED: Final = "Tool cancelled by hook"
_NOT_OVER: Final = frozenset({"cancelled", "interrupt", "checkpoint"})
TURN_ENDED: Final = "Turn ended early by hook after tool execution"


@final
class DispatchPlugin:
    """Calls the callbacks of one agent.

    It stands around the other plugins of the agent: what a callback changes, they see, and what they answer in the
    model's or a tool's place, callbacks see.

    Attributes:
        registry: The callbacks.
    """

    name = "hooks-dispatch"
    order = -10

    def __init__(self, agent: Agent, registry: HookRegistry) -> None:
        self.registry = registry
        self._agent = ref(agent)

    @hookimpl(tryfirst=True)
    def on_agent_ready(self, agent: Agent) -> None:
        """Gives a clone callbacks of its own, before its plugins register theirs."""
        if self._agent() is not agent:
            hooks = agent.hooks
            own = [DispatchPlugin(agent, self.registry.copy()) if each is self else each for each in hooks.plugins]
            agent.hooks = Hooks.of(own[: hooks.own], own[hooks.own :])

    # -- invocations -----------------------------------------------------------------------------------------------

    @hookimpl
    async def around_invocation(
        self, invocation: Invocation, call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]], agent: Agent
    ) -> AgentResult | Denied:
        """Runs the invocation, and another one as long as callbacks ask for it."""
        while True:
            result, resume = await self._invocation(invocation, call_next, agent)
            if resume is None:
                return result

            invocation = _with_input(invocation, resume, agent)

    async def _invocation(
        self, invocation: Invocation, call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]], agent: Agent
    ) -> tuple[AgentResult | Denied, AgentInput]:
        state = invocation.options.invocation_state
        if self.registry.has_callbacks(BeforeInvocationEvent):
            before = BeforeInvocationEvent(agent, state, copy.deepcopy(list(invocation.messages)))
            await self.registry.invoke_callbacks_async(before)
            refusal = _text(before.cancel, INVOCATION_DENIED)
            if refusal is not None:
                await self.registry.invoke_callbacks_async(AfterInvocationEvent(agent, state))
                return Denied(refusal), None

            if before.messages != list(invocation.messages):
                invocation = _with_input(invocation, before.messages, agent)

        try:
            with Following(agent, len(invocation.messages)):
                result = await call_next(invocation)
                if isinstance(result, AgentResult) and result.stop_reason != "cancelled":
                    await self._tell_of_messages(agent, ())  # when the run was stopped before the first model call
        except BaseException as error:
            await self.registry.clean_up(AfterInvocationEvent(agent, state), error)
            raise

        ended = result if isinstance(result, AgentResult) else None
        after = await self.registry.invoke_callbacks_async(AfterInvocationEvent(agent, state, ended))
        goes_on = ended is not None and ended.stop_reason not in _NOT_OVER
        return result, after.resume if goes_on else None

    # -- the model -------------------------------------------------------------------------------------------------

    @hookimpl
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> ModelOutcome | Retry:
        """One attempt."""
        has, state = self.registry.has_callbacks, request.invocation_state
        await self._tell_of_messages(agent, request.messages)
        refusal: str | None = None
        if has(BeforeModelCallEvent):
            before = BeforeModelCallEvent(agent, state, count=lambda: estimate_tokens(request.messages))
            await self.registry.invoke_callbacks_async(before)
            refusal = _text(before.cancel, MODEL_CALL_DENIED)

        try:
            outcome = await call_next(request) if refusal is None else ModelOutcome.saying(refusal)
        except Suspend:  # the attempt has not ended
            raise
        except BaseException as error:
            failed = AfterModelCallEvent(agent, state, exception=error)
            try:
                await self.registry.clean_up(failed, error)
                if failed.retry and isinstance(error, Exception):
                    return Retry(f"a hook asked for it after {type(error).__name__}: {error}")
            finally:
                del failed  # or the error's own frame would refer to it

            raise

        return await self._answered(outcome, state, agent) if has(AfterModelCallEvent) else outcome

    async def _answered(
        self, outcome: ModelOutcome | Retry, state: dict[str, Any], agent: Agent
    ) -> ModelOutcome | Retry:
        if isinstance(outcome, Retry):
            await self.registry.invoke_callbacks_async(AfterModelCallEvent(agent, state, retry=True))

        if not isinstance(outcome, ModelOutcome):  # also what is no outcome at all: the kernel refuses it
            return outcome

        after = AfterModelCallEvent(agent, state, ModelStopResponse(outcome.message, outcome.stop_reason))
        await self.registry.invoke_callbacks_async(after)
        return Retry("a hook asked for it") if after.retry and outcome.stop_reason != "cancelled" else outcome

    # -- the tools -------------------------------------------------------------------------------------------------

    @hookimpl
    async def around_tools(
        self, batch: ToolBatch, call_next: Callable[[ToolBatch], Awaitable[ToolsOutcome]], agent: Agent
    ) -> ToolsOutcome:
        """The tools of one message."""
        refusal = await self._before_tools(batch, agent) if self.registry.has_callbacks(BeforeToolsEvent) else None
        try:
            done = await call_next(batch) if refusal is None else ToolsOutcome(_refused(batch, refusal))
        except BaseException as error:
            await self.registry.clean_up(AfterToolsEvent(agent, {"role": "user", "content": []}), error)
            raise

        if not self.registry.has_callbacks(AfterToolsEvent) or not isinstance(done, ToolsOutcome):
            return done  # what is no outcome, the kernel refuses with the name of the plugin

        blocks: list[ContentBlock] = [{"toolResult": result} for result in _finished(done)]
        after = AfterToolsEvent(agent, {"role": "user", "content": blocks}, done.end_turn or False)
        await self.registry.invoke_callbacks_async(after)
        return ToolsOutcome(done.results, _final(after.end_turn), done.stop)

    async def _before_tools(self, batch: ToolBatch, agent: Agent) -> str | None:
        """What the calls are refused with; None when they are not."""
        before = BeforeToolsEvent(agent, _asking(agent), ask=batch.interrupt)
        try:
            await self.registry.invoke_callbacks_async(before)
        except Suspend as suspend:
            await self.registry.clean_up(AfterToolsEvent(agent, {"role": "user", "content": []}), suspend)
            raise

        return _text(before.cancel, TOOLS_CANCELLED)

    @hookimpl
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """One tool call, and its repetitions."""
        has = self.registry.has_callbacks
        if not has(BeforeToolCallEvent) and not has(AfterToolCallEvent):
            return await call_next(call)

        return await call_tool(self.registry, call, call_next, agent)

    # -- the history -----------------------------------------------------------------------------------------------

    @hookimpl
    async def on_event(self, event: Event, agent: Agent) -> None:
        """Tells of the messages of the model and of the tools."""
        if isinstance(event, MessageAdded):
            unseen = unseen_of(agent)
            if unseen is not None:
                unseen.saw(event.message)

            if self.registry.has_callbacks(MessageAddedEvent):
                await self._tell(agent, event.message)

    async def _tell_of_messages(self, agent: Agent, request: Sequence[Message]) -> None:
        """Tells of what came in another way: the input, and what plugins have the user say."""
        unseen = unseen_of(agent)
        for message in unseen.take(request) if unseen is not None else ():
            await self._tell(agent, message)

    async def _tell(self, agent: Agent, message: Message) -> None:
        """Tells of a copy: what a callback wrote to the history's own message no gate would see, and no log."""
        try:
            await self.registry.invoke_callbacks_async(MessageAddedEvent(agent, plain_copy(message)))
        except Suspend as suspend:
            raise HookError(
                f"a callback for MessageAddedEvent asks {suspend!s}, and what has happened cannot wait for an answer: "
                "interrupt in BeforeModelCallEvent, BeforeToolsEvent or BeforeToolCallEvent"
            ) from None


def _with_input(invocation: Invocation, given: AgentInput, agent: Agent) -> Invocation:
    """The invocation with what a callback wants the agent to be asked.

    Raises:
        InvalidPromptError: It has none of the forms of a prompt.
    """
    if invocation.resumed and not invocation.messages and current_run().resumed is not None:
        # failing here would lose what waits
        logger.warning("BeforeInvocationEvent.messages is ignored while a paused run of agent %r goes on", agent.name)
        return invocation

    messages = prompt_messages(given)
    if not messages and not agent.history.messages:
        raise InvalidPromptError("a callback left no input and there is no history to go on with: leave a message")

    return invocation.with_messages(list(messages))


def _asking(agent: Agent) -> Message:
    """The model's message whose tool uses are about to run."""
    unseen = unseen_of(agent)
    if unseen is not None and unseen.asking is not None:
        return unseen.asking

    return current_run().history.messages[-1]


def _refused(batch: ToolBatch, text: str) -> list[ToolResult]:
    """One error result per call; those that were done before a pause keep theirs."""
    known = current_run().calls.known
    uses = [call.tool_use["toolUseId"] for call in batch.calls]
    return [known(use_id) or error_result(use_id, text) for use_id in uses]


def _finished(done: ToolsOutcome) -> list[ToolResult]:
    """The results, without what stands in for those of calls that wait, or have not begun for a pause."""
    run = current_run()
    return [each for each in done.results if not run.interrupts or each["toolUseId"] in run.calls.finished]


def _text(cancel: object, default: str) -> str | None:
    """What is said instead of what a callback has cancelled; None when it has not."""
    if not cancel:
        return None

    return cancel if isinstance(cancel, str) else default


def _final(end_turn: Any) -> str | list[ContentBlock] | None:
    """What ends the turn, or None.

    Raises:
        HookError: It is neither a bool nor a text nor content blocks.
    """
    if not end_turn:
        return None

    if end_turn is True:
        return TURN_ENDED

    if isinstance(end_turn, str):
        return end_turn

    if not isinstance(end_turn, list | tuple):
        raise HookError(f"AfterToolsEvent.end_turn is {end_turn!r:.80}: write True, a text or content blocks")

    return [checked_block(block, f"AfterToolsEvent.end_turn[{i}]") for i, block in enumerate(end_turn)]
