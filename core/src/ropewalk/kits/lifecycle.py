"""Typed lifecycle events: what happens in an agent, as objects that callbacks get. The plugin `hooks` dispatches them.

An event's fields are read-only except the few by which a callback takes part; writing any other raises AttributeError.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, runtime_checkable

from ropewalk.types import AgentInput, ContentBlock, Message, StopReason, ToolResult, ToolUse

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.result import AgentResult
    from ropewalk.tools import Tool
    from ropewalk_hooks import HookRegistry


class HookOrder:
    """Places in the order of callbacks; any number will do, lower is called first."""

    SDK_FIRST: Final = -100
    DEFAULT: Final = 0
    SDK_LAST: Final = 100


# -- the base ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class HookEvent:
    """Base of all events. Callbacks are chosen by the exact class, so nobody subscribes to this one.

    Attributes:
        agent: Where it happens.
        writable: Names of the fields that callbacks may write.
        should_reverse_callbacks: Whether this ends something: callbacks of equal order are called last registered
            first, all of them, also when one raises.
    """

    writable: ClassVar[frozenset[str]] = frozenset()
    should_reverse_callbacks: ClassVar[bool] = False

    agent: Agent

    def __post_init__(self) -> None:
        object.__setattr__(self, "_complete", True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.writable and "_complete" in self.__dict__:
            allowed = ", ".join(sorted(self.writable)) or "none"
            raise AttributeError(f"{type(self).__name__}.{name} cannot be written: its writable fields are {allowed}")

        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: give writable fields another value")


@dataclass(eq=False)
class InterruptibleEvent(HookEvent):
    """Base of the events whose callbacks may ask the agent's caller.

    Attributes:
        ask: Asks; use `interrupt`.
    """

    ask: Callable[[str, Any, Any], Any] | None = field(default=None, repr=False, kw_only=True)

    def interrupt(self, name: str, reason: Any = None, response: Any = None) -> Any:
        """Asks whoever called the agent, and pauses the run until there is an answer.

        The other callbacks of the event are called all the same, and what they ask is asked together with this. When
        the run goes on, all of them are called again, and get their answers here.

        Args:
            name: Names the question; each callback of an event needs names of its own.
            reason: What the caller is told, JSON only.
            response: An answer that is known already; nobody is asked then.

        Returns:
            The answer; any JSON value, also None.

        Raises:
            Suspend: There is no answer yet. Let it pass.
            ValueError: The name is no text, or another callback of the event has it.
            RuntimeError: Nobody could answer: in a run beside another one, or in an event that no run has made. (In a
                direct call of a tool, its caller gets a RuntimeError.)
        """
        if self.ask is None:
            raise RuntimeError(
                f"{type(self).__name__} is no part of a run: interrupt in a callback that an agent calls"
            )

        return self.ask(name, reason, response)


TEvent = TypeVar("TEvent", bound=HookEvent)
TCalled_contra = TypeVar("TCalled_contra", bound=HookEvent, contravariant=True)


class HookCallback(Protocol[TCalled_contra]):
    """What is called with an event: a function, method, partial or object; may be async."""

    def __call__(self, event: TCalled_contra, /) -> Awaitable[None] | None:
        """Looks at the event, and writes to it to take part."""
        ...


@runtime_checkable
class HookProvider(Protocol):
    """An object that brings several callbacks: `Agent(hooks=[Mine()])`."""

    def register_hooks(self, registry: HookRegistry) -> None:
        """Registers them: `registry.add_callback(BeforeModelCallEvent, self.before_model)`."""
        ...


# -- the agent and its invocations -------------------------------------------------------------------------------


@dataclass(eq=False)
class AgentInitializedEvent(HookEvent):
    """The agent is constructed. Its callbacks are synchronous."""


@dataclass(eq=False)
class BeforeInvocationEvent(HookEvent):
    """An invocation begins, or goes on after a pause; nothing of its input is in the history yet.

    Attributes:
        invocation_state: The caller's dict, by reference.
        messages: The input, copied; writable, what is here afterwards is what the agent is asked. Empty when a paused
            run goes on, and not to be written to then.
        cancel: Writable: True or a text answers in the model's place, and nothing is stored.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"messages", "cancel"})

    invocation_state: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] | None = None
    cancel: bool | str = False


@dataclass(eq=False)
class AfterInvocationEvent(HookEvent):
    """An invocation ends.

    Attributes:
        invocation_state: The caller's dict, by reference.
        result: The result; None when the invocation failed or was cancelled by a callback.
        resume: Writable: the input of another invocation that follows at once; the caller gets the last one's result.
            Ignored when there is no result, the agent was cancelled, or it waits (stop reason `"interrupt"` or
            `"checkpoint"`).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"resume"})
    should_reverse_callbacks: ClassVar[bool] = True

    invocation_state: dict[str, Any] = field(default_factory=dict)
    result: AgentResult | None = None
    resume: AgentInput = None


@dataclass(eq=False)
class MessageAddedEvent(HookEvent):
    """A message is in the history; one that was merged into the last message comes as the whole.

    Attributes:
        message: The message, not to be written to.
    """

    message: Message


# -- the model ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class BeforeModelCallEvent(HookEvent):
    """One attempt at a model call begins.

    Attributes:
        invocation_state: The caller's dict, by reference.
        cancel: Writable: True or a text becomes the model's answer, and the model is not called.
        count: Estimates the tokens of the request; use `projected_input_tokens`.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"cancel"})

    invocation_state: dict[str, Any] = field(default_factory=dict)
    cancel: bool | str = False
    count: Callable[[], int] | None = field(default=None, repr=False)

    @property
    def projected_input_tokens(self) -> int | None:
        """A rough count of the request's tokens, made when it is first read; None when nobody can tell."""
        known: dict[str, Any] = self.__dict__
        if "_projected" not in known:
            known["_projected"] = None if self.count is None else self.count()

        tokens: int | None = known["_projected"]
        return tokens


@dataclass(frozen=True, slots=True)
class ModelStopResponse:
    """What the model said.

    Attributes:
        message: The assistant's message, not to be written to.
        stop_reason: Why the model stopped.
    """

    message: Message
    stop_reason: StopReason


@dataclass(eq=False)
class AfterModelCallEvent(HookEvent):
    """One attempt at a model call ends, with a `stop_response` or an `exception`.

    When another plugin has asked for the next attempt already, both are None and `retry` is True.

    Attributes:
        invocation_state: The caller's dict, by reference.
        stop_response: What the model said.
        exception: What the call raised.
        retry: Writable: True drops the answer or the error and calls the model again; what the answer cost counts.
            Ignored when the agent was cancelled.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"retry"})
    should_reverse_callbacks: ClassVar[bool] = True

    invocation_state: dict[str, Any] = field(default_factory=dict)
    stop_response: ModelStopResponse | None = None
    exception: BaseException | None = None
    retry: bool = False


# -- the tools ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class BeforeToolsEvent(InterruptibleEvent):
    """The tools of one message of the model are about to run, or to go on after a pause.

    Attributes:
        message: The model's message with the tool uses, not to be written to.
        cancel: Writable: True or a text answers every use with an error result, and none runs.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"cancel"})

    message: Message
    cancel: bool | str = False


@dataclass(eq=False)
class AfterToolsEvent(HookEvent):
    """The tools of one message have run; their results are about to be added to the history.

    Attributes:
        message: The user message with the results, not to be written to; without content when an error ended them. When
            calls wait for an answer, it has the results there are, and is not added to the history.
        end_turn: Writable: True, a text or content blocks become the final answer; the model is not called again.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"end_turn"})
    should_reverse_callbacks: ClassVar[bool] = True

    message: Message
    end_turn: bool | str | list[ContentBlock] = False


@dataclass(eq=False)
class BeforeToolCallEvent(InterruptibleEvent):
    """One tool call begins; again for each repetition, and when the call goes on after a pause.

    Attributes:
        selected_tool: Writable: the tool that will run; None when no tool has the name.
        tool_use: Writable: id, name and input, copied. Another name selects the tool of that name, unless
            `selected_tool` is written too. The history keeps what the model asked for. The id stays.
        invocation_state: The caller's dict, by reference.
        cancel_tool: Writable: True or a text answers the call with an error result, and the tool does not run.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"selected_tool", "tool_use", "cancel_tool"})

    selected_tool: Tool | None
    tool_use: ToolUse
    invocation_state: dict[str, Any] = field(default_factory=dict)
    cancel_tool: bool | str = False


@dataclass(eq=False)
class AfterToolCallEvent(HookEvent):
    """One tool call ends. A call that waits for an answer has not ended.

    Attributes:
        selected_tool: The tool that ran; None when none did.
        tool_use: Id, name and input as they ran, not to be written to.
        invocation_state: The caller's dict, by reference.
        result: Writable: what the model will see, copied.
        exception: What was raised, as far as it is known.
        cancel_message: The text of `cancel_tool`, when a callback cancelled the call.
        duration: Seconds; None when no tool ran.
        retry: Writable: True runs the tool again; only the last result counts. Ignored when the agent was cancelled.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"result", "retry"})
    should_reverse_callbacks: ClassVar[bool] = True

    selected_tool: Tool | None
    tool_use: ToolUse
    invocation_state: dict[str, Any]
    result: ToolResult
    exception: BaseException | None = None
    cancel_message: str | None = None
    duration: float | None = None
    retry: bool = False


EVENTS: Final[tuple[type[HookEvent], ...]] = (
    AgentInitializedEvent,
    BeforeInvocationEvent,
    AfterInvocationEvent,
    MessageAddedEvent,
    BeforeModelCallEvent,
    AfterModelCallEvent,
    BeforeToolsEvent,
    AfterToolsEvent,
    BeforeToolCallEvent,
    AfterToolCallEvent,
)
"""The events of an agent."""
