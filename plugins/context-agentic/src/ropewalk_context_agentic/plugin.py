"""Lets the model manage its context: tools that note what it wants, and a status line in each request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast, final
from weakref import WeakKeyDictionary

import pydantic

from ropewalk import HistoryEdit, ModelOutcome, ModelRequest, Retry, Tool, current_run, hookimpl
from ropewalk.kits.context import conversation
from ropewalk.kits.context.summaries import PURPOSE, SummaryCancelledError, answer_of, request_of, summary_of
from ropewalk.kits.messages.estimate import tokens_around
from ropewalk_context_agentic import stash
from ropewalk_context_agentic.carrying_out import Change, carried_out, edits_between
from ropewalk_context_agentic.tools import CELL, tools
from ropewalk_context_agentic.wishes import Wish, forget, noted

if TYPE_CHECKING:
    from ropewalk import Agent, ContextRequest
    from ropewalk.kits.calls.edits import ContextReason
    from ropewalk.kits.context.folding import Folding
    from ropewalk.run import Run
    from ropewalk.types import Message

logger = logging.getLogger("ropewalk.context_agentic")

_FAULT: Final = "fault"


@final
class ContextAgenticPlugin:
    """Gives the model tools to summarize, truncate, pin and retrieve, and tells it how full its window is."""

    name = CELL
    order = 1_000  # innermost: the status line is in the request only, and no other plugin takes it for history

    class Config(pydantic.BaseModel):
        """Options of the plugin.

        Attributes:
            compression_threshold: The share of the window from which on the history is summarized even when the model
                did not see to it.
            max_result_tokens: Tool results with more tokens are offloaded.
            preview_tokens: Tokens of an offloaded result that stay.
            status_line: Whether each request ends with the used and remaining tokens.
        """

        compression_threshold: float = pydantic.Field(default=1.0, gt=0, le=1)
        max_result_tokens: int = pydantic.Field(default=8_000, ge=1)
        preview_tokens: int = pydantic.Field(default=1_000, ge=0)
        status_line: bool = True

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or self.Config()
        self._sizes: WeakKeyDictionary[object, tuple[int, int | None]] = WeakKeyDictionary()

    @hookimpl
    def adopt(self, value: Any) -> list[tuple[str, dict[str, Any]]] | None:
        """Takes `context_manager="agentic"`: beside the model's own work there is a net below it."""
        if value != "agentic":
            return None

        chosen = self._config
        return [
            ("summarize", {"compression_threshold": chosen.compression_threshold, "gives_way": True}),
            ("offload", {"max_result_tokens": chosen.max_result_tokens, "preview_tokens": chosen.preview_tokens}),
        ]

    @hookimpl
    def provide_tools(self) -> list[Tool]:
        """Brings the tools."""
        return tools()

    @hookimpl
    async def manage_context(
        self, request: ContextRequest, reason: ContextReason, agent: Agent
    ) -> list[HistoryEdit] | None:
        """Carries out what the model has wished."""
        run, state = current_run(), agent.plugin_state(CELL)
        beside = None if run.history is agent.history else run.id
        if reason == "after_invocation":
            if beside is not None and noted(state, beside):
                forget(state, noted(state, beside))  # what they are about ends with the run

            return None

        wishes = noted(state, beside) if reason != "overflow" else []
        edits = await self._wished(wishes, request, agent) if wishes else None
        if reason != "after_tools":
            self._sizes[run] = (request.tokens, request.window)

        return edits

    @hookimpl
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]]
    ) -> ModelOutcome | Retry:
        """Adds the status line to the last message of the request; the history does not get it."""
        messages: list[Message] = []
        if request.purpose == "turn" and self._config.status_line:
            messages = list(request.messages)

        if not messages or messages[-1]["role"] != "user":
            return await call_next(request)

        run = current_run()
        size = self._sizes.get(run) or _size_of(run, request)
        fault = run.agent.plugin_state(CELL).get(_FAULT)
        line = {"text": status_line(*size, fault)}
        messages[-1] = cast("Message", {**messages[-1], "content": [*messages[-1]["content"], line]})
        return await call_next(replace(request, messages=messages))

    async def _wished(self, wishes: list[Wish], request: ContextRequest, agent: Agent) -> list[HistoryEdit] | None:
        state, before = agent.plugin_state(CELL), conversation(request, agent)
        now, faults, done = before, list[str](), list[Wish]()
        for wish in wishes:
            try:
                change = await carried_out(wish, now, _summarizer(request.window))
            except SummaryCancelledError:
                break  # this one and those behind it stay, for when the run is gone on with
            except Exception as error:
                logger.info("agent %r: %s_context changed nothing", agent.name, wish.kind, exc_info=error)
                faults.append(f"{wish.kind}_context changed nothing: {error}")
            else:
                now = change.messages
                _keep(agent, wish, change)

            done.append(wish)

        if not done:
            return None

        forget(state, done)
        if faults:
            state.set(_FAULT, " ".join(faults))
        else:
            state.delete(_FAULT)

        reason = "the model asked for it: " + ", ".join(f"{wish.kind}_context" for wish in done)
        return edits_between(request.ids, before, now, reason)


def _size_of(run: Run, request: ModelRequest) -> tuple[int, int | None]:
    """Tokens and window of a turn that a pause has interrupted: the context was managed before it."""
    history = run.history
    used = history.tokens.of(
        history.messages, history.version, lambda: tokens_around(request.system, request.tool_specs)
    )
    return used, getattr(run.agent.current_model, "context_window", None)


def status_line(used: int, window: int | None, fault: str | None = None) -> str:
    """What a model is told of its context."""
    if window is None:
        told = f"<used>{used} tokens</used>"
    else:
        share = used / window if window > 0 else 1.0
        told = (
            f"<used>{used} / {window} tokens ({share:.0%})</used><remaining>~{max(window - used, 0)} tokens</remaining>"
        )

    note = f"<note>{fault}</note>" if fault else ""
    return f"<context-status>{told}{note}</context-status>"


def _keep(agent: Agent, wish: Wish, change: Change) -> None:
    if change.removed and wish.reference is not None:
        stash.keep(agent.plugin_state(CELL), wish.reference, change.removed)


def _summarizer(window: int | None) -> Callable[[Folding], Awaitable[str]]:
    async def ask(prompt: str) -> str:
        return answer_of(await current_run().ask_model(request_of(prompt), PURPOSE))

    return lambda folding: summary_of(folding, ask, window)
