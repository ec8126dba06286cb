"""The hooks of one agent: one typed method per hook.

A method whose hook nobody implements costs one truth test. The kernel reads `hooks.plan.<hook>` where even that call
is too much.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from ropewalk.kits.calls.edits import CONTEXT_REASONS
from ropewalk.kits.hooks import verbs
from ropewalk.kits.hooks.blueprint import Links, Plan, blueprint, key_of
from ropewalk.kits.hooks.gates import pass_gates
from ropewalk.kits.hooks.refusals import check_plugin
from ropewalk.kits.hooks.tracing import traced

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.edits import ContextReason, ContextRequest, HistoryEdit
    from ropewalk.kits.calls.invocation import CallOptions, Cycle, Denied, Invocation
    from ropewalk.kits.calls.outcomes import Failure, ModelOutcome, Retry, Stop, ToolsOutcome
    from ropewalk.kits.calls.verdicts import Guide, Moment, Refuse
    from ropewalk.kits.events import Event
    from ropewalk.kits.hooks.tracing import HookCall
    from ropewalk.kits.log.fold import LogState
    from ropewalk.kits.log.records import Record
    from ropewalk.kits.result import AgentResult
    from ropewalk.kits.suspension import Suspension
    from ropewalk.model import Model, ModelRequest
    from ropewalk.tools import Tool, ToolBatch, ToolCall
    from ropewalk.types import ContentBlock, Message, ToolResult


S = TypeVar("S")
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NO_MANAGERS: Final[Mapping[str, Links]] = MappingProxyType(dict.fromkeys(CONTEXT_REASONS, ()))


@final
class Hooks:
    """An agent's plugins and the plan by which they are called. Immutable; it knows no agent.

    Attributes:
        plan: The links of every hook.
        plugins: The instances, the agent's own first, then those that are active unasked.
        own: How many of them are the agent's own.
        off: Plugins that are switched off, with what did it.
        given: Parameters whose value was a plugin, with that plugin's name: it is what does their work.
        managers: The links of `manage_context`, by the reason for which they are asked.
    """

    __slots__ = ("given", "managers", "off", "own", "plan", "plugins")

    def __init__(
        self,
        plan: Plan,
        plugins: tuple[Any, ...],
        own: int = 0,
        off: Mapping[str, str] = NOTHING,
        given: Mapping[str, str] = NOTHING,
    ) -> None:
        self.plan = traced(plan, plugins) if plan.on_hook_call else plan
        self.plugins = plugins
        self.own = own
        self.off = off
        self.given = given
        self.managers = _managers(self.plan.manage_context, plugins)

    @classmethod
    def of(cls, own: Sequence[Any], others: Sequence[Any] = ()) -> Hooks:
        """Builds the hooks of plugin instances.

        Args:
            own: The agent's own, in order.
            others: Those that are active unasked.

        Raises:
            PluginError: One of them does not fit the specifications.
        """
        plugins = (*own, *others)
        for plugin in plugins:
            check_plugin(plugin)

        return cls(blueprint(tuple(map(key_of, plugins))), plugins, len(own))

    def with_plugin(self, plugin: object) -> Hooks:
        """The hooks with one plugin more.

        Args:
            plugin: As an entry of `plugins=`: an instance, a class, a name or `(name, options)`.

        Returns:
            New hooks; a plugin of that name which was active unasked is replaced.
        """
        from ropewalk.kits.hooks.activation import extend  # activation builds facades

        return extend(self, plugin)

    # -- assembly ------------------------------------------------------------------------------------------------

    def provide_model(self, spec: str | None, agent: Agent) -> Model | None:
        """Asks for the model of a model string."""
        links = self.plan.provide_model
        return verbs.call_first(links, self.plugins, (spec, agent)) if links else None

    def provide_method(self, name: str, agent: Agent) -> Callable[..., Any] | None:
        """Asks for what a method of Agent does."""
        links = self.plan.provide_method
        return verbs.call_first(links, self.plugins, (name, agent)) if links else None

    def provide_sandbox(self, spec: Any, agent: Agent) -> Any:
        """Asks for the agent's sandbox."""
        links = self.plan.provide_sandbox
        return verbs.call_first(links, self.plugins, (spec, agent)) if links else None

    def provide_tool(self, spec: Any, agent: Agent) -> Tool | list[Tool] | None:
        """Asks for the tools of an entry that is none yet."""
        links = self.plan.provide_tool
        return verbs.call_first(links, self.plugins, (spec, agent)) if links else None

    def provide_tools(self, agent: Agent) -> list[Tool]:
        """The tools that plugins bring, in one list."""
        links = self.plan.provide_tools
        return verbs.collect(links, self.plugins, (agent,)) if links else []

    def provide_commands(self) -> list[Any]:
        """The click commands that plugins bring, in one list."""
        links = self.plan.provide_commands
        return verbs.collect(links, self.plugins, ()) if links else []

    def adopt(self, parameter: str, value: Any, agent: Agent) -> Any:
        """Asks every plugin, not only the parameter's owner, what a parameter's value means."""
        links = self.plan.adopt
        return verbs.call_first(links, self.plugins, (parameter, value, agent)) if links else None

    def on_agent_ready(self, agent: Agent) -> None:
        """Tells that an agent is constructed."""
        links = self.plan.on_agent_ready
        if links:
            verbs.call(links, self.plugins, (agent,))

    async def init_agent(self, agent: Agent) -> None:
        """Runs what plugins await before an agent's first run."""
        links = self.plan.init_agent
        if links:
            await verbs.gather(links, self.plugins, (agent,))

    async def on_close(self, agent: Agent) -> None:
        """Lets every plugin clean up; their errors come together in an ExceptionGroup."""
        links = self.plan.on_close
        if links:
            await verbs.close(links, self.plugins, (agent,))

    # -- control -------------------------------------------------------------------------------------------------

    def check_call(self, options: CallOptions, agent: Agent) -> None:
        """Lets plugins refuse what a caller gave."""
        links = self.plan.check_call
        if links:
            verbs.call(links, self.plugins, (options, agent))

    async def admit(self, options: CallOptions, agent: Agent) -> Any:
        """Asks whether a busy agent takes this call all the same."""
        links = self.plan.admit
        return await verbs.first(links, self.plugins, (options, agent)) if links else None

    async def intervene(
        self, moment: Moment, subject: S, agent: Agent, *, policies_only: bool = False
    ) -> tuple[S, Refuse | Guide | None]:
        """Sends a subject through the gates: the subject as it passed, and the refusal if there is one."""
        links = self.plan.intervene
        if not links:
            return subject, None

        return await pass_gates(links, self.plugins, moment, subject, agent, policies_only=policies_only)

    async def decide_stop(self, cycle: Cycle, agent: Agent) -> Stop | None:
        """Asks whether the run stops at the top of a cycle."""
        links = self.plan.decide_stop
        return await verbs.first(links, self.plugins, (cycle, agent)) if links else None

    async def decide_continue(self, message: Message, agent: Agent) -> list[ContentBlock] | None:
        """Asks whether the run goes on when the model has ended its turn, and with what."""
        links = self.plan.decide_continue
        return await verbs.first(links, self.plugins, (message, agent)) if links else None

    async def decide_retry(self, failure: Failure, agent: Agent) -> float | None:
        """Asks whether, and after how many seconds, a failed model call is tried again."""
        links = self.plan.decide_retry
        return await verbs.first(links, self.plugins, (failure, agent)) if links else None

    def manage_context(
        self,
        request: ContextRequest,
        reason: ContextReason,
        agent: Agent,
        *,
        take: Callable[[str, Sequence[HistoryEdit] | None], None],
    ) -> Awaitable[None]:
        """Asks for edits; `take` gets a plugin's name and what it proposes before the next plugin is asked."""
        return verbs.each(self.managers[reason], self.plugins, (request, reason, agent), take)

    # -- tools, observation, durability --------------------------------------------------------------------------

    def execute_tools(
        self, batch: ToolBatch, run_tool: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> Awaitable[list[ToolResult] | None]:
        """Lets an executor run a batch; None when there is none."""
        return verbs.first(self.plan.execute_tools, self.plugins, (batch, run_tool, agent))

    async def on_event(self, event: Event, agent: Agent) -> None:
        """Tells of a boundary."""
        links = self.plan.on_event
        if links:
            await verbs.gather(links, self.plugins, (event, agent))

    def on_delta(self, event: Event, agent: Agent) -> None:
        """Tells of a streamed piece."""
        links = self.plan.on_delta
        if links:
            verbs.call(links, self.plugins, (event, agent))

    def on_hook_call(self, call: HookCall, agent: Agent) -> None:
        """Tells of a call of another hook."""
        links = self.plan.on_hook_call
        if links:
            verbs.call(links, self.plugins, (call, agent))

    async def emit_checkpoint(self, position: str, cycle_index: int, agent: Agent) -> Any:
        """Asks whether the run pauses here: the checkpoint, or None."""
        links = self.plan.emit_checkpoint
        return await verbs.first(links, self.plugins, (position, cycle_index, agent)) if links else None

    async def resume_run(self, payload: Any, pause: Suspension | None, agent: Agent) -> bool | None:
        """Asks whether a payload is the checkpoint of the agent's pause."""
        links = self.plan.resume_run
        return await verbs.first(links, self.plugins, (payload, pause, agent)) if links else None

    def read_records(self, agent: Agent) -> LogState | None:
        """Asks for the state of the agent's log."""
        links = self.plan.read_records
        return verbs.call_first(links, self.plugins, (agent,)) if links else None

    async def write_records(self, records: Sequence[Record], agent: Agent) -> None:
        """Stores records. Build none when `plan.write_records` is empty."""
        links = self.plan.write_records
        if links:
            await verbs.gather(links, self.plugins, (records, agent))

    # -- chains: compose once per run or call, then call the result ----------------------------------------------

    def around_invocation(
        self, inner: Callable[[Invocation], Awaitable[AgentResult | Denied]], agent: Agent
    ) -> Callable[[Invocation], Awaitable[AgentResult | Denied]]:
        """The chain around one call of the agent; `inner` itself when nobody wraps it."""
        return verbs.around(self.plan.around_invocation, self.plugins, inner, agent)

    def around_model_call(
        self, inner: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]]:
        """The chain around one attempt at a model call; `inner` itself when nobody wraps it."""
        return verbs.around(self.plan.around_model_call, self.plugins, inner, agent)

    def around_tools(
        self, inner: Callable[[ToolBatch], Awaitable[ToolsOutcome]], agent: Agent
    ) -> Callable[[ToolBatch], Awaitable[ToolsOutcome]]:
        """The chain around the tools of one message; `inner` itself when nobody wraps it."""
        return verbs.around(self.plan.around_tools, self.plugins, inner, agent)

    def around_tool_call(
        self, inner: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> Callable[[ToolCall], Awaitable[ToolResult]]:
        """The chain around one tool; `inner` itself when nobody wraps it."""
        return verbs.around(self.plan.around_tool_call, self.plugins, inner, agent)


def _managers(links: Links, plugins: tuple[Any, ...]) -> Mapping[str, Links]:
    if not links:
        return _NO_MANAGERS

    wanted = [getattr(plugins[link.index], "context_reasons", None) for link in links]
    return {
        reason: tuple(link for link, reasons in zip(links, wanted, strict=True) if reasons is None or reason in reasons)
        for reason in CONTEXT_REASONS
    }
