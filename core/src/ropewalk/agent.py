"""The Agent: a model, tools, a history, and plugins around the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ropewalk.agent_base import AgentBase
from ropewalk.direct import ToolCaller
from ropewalk.errors import AgentClosedError
from ropewalk.kits.aio.blocking import run_blocking
from ropewalk.kits.aio.locks import Lock
from ropewalk.kits.calls.invocation import CallOptions
from ropewalk.kits.hooks.activation import assemble
from ropewalk.kits.hooks.call_options import CallGiven, checked_given
from ropewalk.kits.hooks.models import resolve_model
from ropewalk.kits.identity import check_trace_attributes, checked_agent_id, checked_model, system_blocks
from ropewalk.kits.messages.history import History
from ropewalk.kits.result import AgentResult
from ropewalk.kits.sentinels import DEFAULT, Default
from ropewalk.kits.state import JSONState
from ropewalk.kits.tool_registry import ToolRegistry
from ropewalk.loop.invocation import invoke
from ropewalk.streaming import stream
from ropewalk.tool_entries import collect_tools
from ropewalk.types import AgentInput, Message, SystemContentBlock

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ropewalk.kits.hooks.facade import Hooks
    from ropewalk.model import Model
    from ropewalk.run import Run


class Agent(AgentBase):
    """Runs the loop: the model is called, the tools that it asks for are run, again until it has an answer.

    One agent holds one conversation and runs one invocation at a time. It is cheap: make one per conversation.
    """

    __slots__ = ("_birth", "_cancel_requested", "_initialising", "_model", "_to_initialise", "agent_id", "description",
        "record_direct_tool_call", "tool_registry")  # fmt: skip

    def __init__(
        self,
        model: Model | str | None = None,
        messages: list[Message] | None = None,
        tools: list[Any] | None = None,
        system_prompt: str | list[SystemContentBlock] | None = None,
        structured_output_model: type[BaseModel] | None = None,
        callback_handler: Callable[..., Any] | Default | None = DEFAULT,
        conversation_manager: Any = None,
        record_direct_tool_call: bool = True,
        load_tools_from_directory: bool = False,
        trace_attributes: Mapping[str, Any] | None = None,
        *,
        agent_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        state: JSONState | dict[str, Any] | None = None,
        context_manager: Literal["auto", "agentic"] | None = None,
        plugins: list[Any] | None = None,
        hooks: list[Any] | None = None,
        interventions: list[Any] | None = None,
        session_manager: Any = None,
        memory_manager: Any = None,
        structured_output_prompt: str | None = None,
        tool_executor: Any = None,
        retry_strategy: Any = DEFAULT,
        concurrent_invocation_mode: Any = DEFAULT,
        checkpointing: bool = False,
        sandbox: Any = None,
    ) -> None:
        """Builds the agent. Nothing is loaded or connected before the first call.

        Args:
            model: A model, a string such as `"local:qwen2.5-coder-1.5b"`, or None for `ROPEWALK_MODEL` or the default.
            messages: Messages to start from; copied, and repaired where they make no valid history.
            tools: Decorated functions, file paths, `"module:function"` strings or tool objects.
            system_prompt: Text, or blocks.
            structured_output_model: Pydantic model that every answer must fill (plugin structured).
            callback_handler: Called with every event; not given prints the answer, None is silent (plugin console).
            conversation_manager: Keeps the history within bounds (plugin window).
            record_direct_tool_call: Whether direct tool calls are kept in the history.
            load_tools_from_directory: Whether `./tools` is loaded and watched (plugin tools).
            trace_attributes: Attributes of the agent's spans (plugin telemetry).
            agent_id: Unique id for stores, without path separators. Default `"default"`.
            name: Default `"Ropewalk Agent"`.
            description: What the agent is for.
            state: JSON state that belongs to the agent.
            context_manager: `"auto"` or `"agentic"` (plugins context-auto, context-agentic).
            plugins: Plugins: names, classes, instances, `(name, options)`, or `"-name"` to switch one off.
            hooks: Typed lifecycle callbacks (plugin hooks).
            interventions: Handlers that allow, deny, guide or confirm (plugin interventions).
            session_manager: Persists the conversation (plugin session-file and others).
            memory_manager: Memory across sessions (plugin memory).
            structured_output_prompt: Asks for structured output when the model did not give it (plugin structured).
            tool_executor: How several tools run (plugin executor).
            retry_strategy: When failed model calls are repeated; None for never (plugin retry).
            concurrent_invocation_mode: What a second call on a busy agent does (plugin concurrency).
            checkpointing: Whether runs pause at cycle boundaries (plugin checkpoint).
            sandbox: Where commands and code run (plugin sandbox-local and others).

        Raises:
            MissingPluginError: A parameter needs a plugin that is not installed or not active.
            PluginError: A plugin is broken, or does not understand its parameter.
            ToolDefinitionError: An entry of `tools` is no tool.
            ValueError: The id has path separators, or a value is of the wrong kind.
        """
        self.agent_id = checked_agent_id(agent_id)
        self.name = name if name is not None else "Ropewalk Agent"
        self.description = description
        self.record_direct_tool_call = record_direct_tool_call
        self.state = state if isinstance(state, JSONState) else JSONState(state)
        self.history = History(messages)
        self.tool_registry = ToolRegistry()
        self._birth = (tuple(self.messages), self.state.get())
        self._model = checked_model(model)
        self._system = system_blocks(system_prompt)
        check_trace_attributes(trace_attributes)
        self._cells: dict[str, JSONState] | None = None
        self._runs: list[Run] = []
        self.suspension, self.log = None, None
        self._cancel_requested = False
        self._closed = False
        self._sandbox: Any = None
        given = {
            parameter: value
            for parameter, value, unset in (
                ("structured_output_model", structured_output_model, None),
                ("structured_output_prompt", structured_output_prompt, None),
                ("callback_handler", callback_handler, DEFAULT),
                ("conversation_manager", conversation_manager, None),
                ("load_tools_from_directory", load_tools_from_directory, False),
                ("trace_attributes", trace_attributes, None),
                ("context_manager", context_manager, None),
                ("hooks", hooks, None),
                ("interventions", interventions, None),
                ("session_manager", session_manager, None),
                ("memory_manager", memory_manager, None),
                ("tool_executor", tool_executor, None),
                ("retry_strategy", retry_strategy, DEFAULT),
                ("concurrent_invocation_mode", concurrent_invocation_mode, DEFAULT),
                ("checkpointing", checkpointing, False),
                ("sandbox", sandbox, None),
            )
            if value is not unset
        }
        self.hooks: Hooks = assemble(plugins, given, self)
        self._to_initialise: Hooks | None = self.hooks
        self._initialising: Lock | None = None
        for tool in collect_tools(self, tools or ()):
            self.tool_registry.add(tool)

        for tool in self.hooks.provide_tools(self):
            self.tool_registry.add(tool)

        known = self.hooks.read_records(self)
        if known is not None:
            self.restore(known)

        self.hooks.on_agent_ready(self)

    # -- calling ---------------------------------------------------------------------------------------------------

    def __call__(
        self, prompt: AgentInput = None, *, invocation_state: dict[str, Any] | None = None, **given: Unpack[CallGiven]
    ) -> AgentResult:
        """Runs one invocation and waits for it; works inside a running event loop too. See `invoke_async`."""
        options = self._options(prompt, invocation_state, given)
        return run_blocking(lambda: invoke(self, options), self.cancel)

    async def invoke_async(
        self, prompt: AgentInput = None, *, invocation_state: dict[str, Any] | None = None, **given: Unpack[CallGiven]
    ) -> AgentResult:
        """Runs one invocation.

        Args:
            prompt: Text, content blocks, messages, or None to go on with the history.
            invocation_state: Handed to tools and hooks by reference; never sent to a model.
            given: Options of plugins, such as limits or structured_output_model.

        Returns:
            The result.

        Raises:
            InvalidPromptError: The prompt has none of the accepted forms.
            ConcurrencyException: Another invocation is under way.
            MaxTokensReachedException: The answer was cut at the model's token limit.
            MissingPluginError: An option needs a plugin that is not installed.
            Exception: What the model or a hook raised.
        """
        return await invoke(self, self._options(prompt, invocation_state, given))

    def stream_async(
        self, prompt: AgentInput = None, *, invocation_state: dict[str, Any] | None = None, **given: Unpack[CallGiven]
    ) -> AsyncIterator[dict[str, Any]]:
        """Runs one invocation and yields its events as dicts, `{"result": AgentResult}` last. See `invoke_async`.

        Closing the iterator ends the run and frees the agent.
        """
        return stream(self, self._options(prompt, invocation_state, given))

    def _options(
        self, prompt: AgentInput, invocation_state: dict[str, Any] | None, given: Mapping[str, Any]
    ) -> CallOptions:
        state = {} if invocation_state is None else invocation_state
        return CallOptions(prompt, state, checked_given(given, state, self.hooks) if given else {})

    def cancel(self) -> None:
        """Stops the invocation under way, or the next one when there is none. May be called from any thread."""
        self._cancel_requested = True
        super().cancel()

    # -- what users see --------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model, loaded now if it was given by name.

        Raises:
            UnknownModelError: No provider knows the name.
            MissingPluginError: Its provider is not installed.
        """
        return self.resolve_model()

    @model.setter
    def model(self, model: Model | str | None) -> None:
        self._model = checked_model(model)

    @property
    def tool_names(self) -> list[str]:
        """Names of the tools, in the order of registration."""
        return self.tool_registry.names

    @property
    def tool(self) -> ToolCaller:
        """The tools as methods: `agent.tool.calculator(expression="1 + 1")`."""
        return ToolCaller(self)

    def clone(self) -> Agent:
        """A fresh agent of the same parts, with the messages and state that this one was constructed with."""
        other = object.__new__(type(self))
        for kind in type(self).__mro__:
            for slot in getattr(kind, "__slots__", ()):
                if slot != "__weakref__":
                    setattr(other, slot, getattr(self, slot))

        getattr(other, "__dict__", {}).update(getattr(self, "__dict__", {}))  # of a subclass without slots
        messages, state = self._birth
        other.history = History(messages)
        other.state = JSONState(state)
        other.tool_registry = self.tool_registry.copy()
        other._runs, other._cells, other.suspension, other.log = [], None, None, None
        other._cancel_requested = other._closed = False
        other._to_initialise, other._initialising = self.hooks, None
        self.hooks.on_agent_ready(other)
        return other

    def cleanup(self) -> None:
        """`close`, under the seeds' name."""
        self.close()

    @property
    def concurrent_invocation_mode(self) -> Any:
        """What a second call on a busy agent does; `"throw"` unless the plugin concurrency says otherwise."""
        found = self.hooks.provide_method("concurrent_invocation_mode", self)
        return "throw" if found is None else found()

    def add_plugin(self, plugin: Any) -> None:
        """Adds a plugin: a name, class, instance or `(name, options)`. Takes effect at the next cycle.

        Raises:
            PluginError: It does not fit.
        """
        before = self.hooks
        self.hooks = before.with_plugin(plugin)
        fresh = type(before).of([p for p in self.hooks.plugins if all(p is not known for known in before.plugins)])
        for tool in fresh.provide_tools(self):
            self.tool_registry.add(tool)

        fresh.on_agent_ready(self)
        waiting = self._to_initialise
        self._to_initialise = (
            self.hooks
            if waiting is before
            else type(before).of([*(waiting.plugins if waiting else ()), *fresh.plugins])
        )

    # -- what the loop needs ---------------------------------------------------------------------------------------

    @property
    def system_blocks(self) -> tuple[SystemContentBlock, ...]:
        """The system prompt as requests carry it."""
        return self._system

    @property
    def current_model(self) -> Model | None:
        """The model if it is loaded."""
        return None if self._model is None or isinstance(self._model, str) else self._model

    def resolve_model(self) -> Model:
        """Loads the model if it was given by name, or not at all, and keeps it."""
        model = self._model
        if model is None or isinstance(model, str):
            model = self._model = resolve_model(self, model)

        return model

    def check_open(self) -> None:
        """Refuses to work after `close`."""
        if self._closed:
            raise AgentClosedError(f"agent {self.name!r} was closed: make a new one, from its messages if need be")

    def claim(self, run: Run) -> bool:
        """Makes the run the agent's one run; False when there is another. Safe between threads."""
        self._runs.append(run)
        if self._runs[0] is not run:
            self._runs.remove(run)
            return False

        if self._cancel_requested:
            run.cancellation.request()

        return True

    def join(self, run: Run) -> None:
        """Lets a run go on beside others."""
        self._runs.append(run)

    def release(self, run: Run) -> None:
        """Frees the agent."""
        self._cancel_requested = False
        self._runs.remove(run)

    async def initialise(self) -> None:
        """Lets plugins run what they await before an agent's first run, once. Runs that begin meanwhile wait for it."""
        waiting = self._to_initialise
        if self._initialising is None and (waiting is None or not waiting.plan.init_agent):
            self._to_initialise = None  # there is nothing to await
            return

        self._initialising = self._initialising or Lock()
        async with self._initialising:
            waiting, self._to_initialise = self._to_initialise, None
            if waiting is not None:
                try:
                    await waiting.init_agent(self)
                except BaseException:
                    self._to_initialise = waiting
                    raise

        self._initialising = None
