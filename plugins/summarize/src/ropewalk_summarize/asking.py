"""Who writes a summary: the agent's own model, or an agent for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropewalk import current_run
from ropewalk.kits.context.summaries import (
    PURPOSE,
    SYSTEM_PROMPT,
    Ask,
    answer_of,
    checked_answer,
    request_of,
)
from ropewalk.kits.messages.assembly import Assembly

if TYPE_CHECKING:
    from ropewalk import Agent, ModelOutcome, ModelRequest


def asker(agent: Agent, summarizer: Any, system_prompt: str | None) -> Ask:
    """The way to whoever writes the summaries of an agent.

    Args:
        agent: Whose history is summarized.
        summarizer: An agent that writes them, or None for the model of `agent`.
        system_prompt: What that model is told; None for the usual instructions.
    """

    async def ask_model(prompt: str) -> str:
        request = request_of(prompt, SYSTEM_PROMPT if system_prompt is None else system_prompt)
        return answer_of(await _outcome(agent, request))

    async def ask_agent(prompt: str) -> str:
        # a clone: the agent's own conversation stays as it is, and several may ask at once
        clone = getattr(summarizer, "clone", None)
        asked = summarizer if clone is None else clone()
        result = await asked.invoke_async(prompt)
        return checked_answer(result.stop_reason, str(result))

    return ask_model if summarizer is None else ask_agent


def window_for(summarizer: Any, window: int | None) -> int | None:
    """Tokens that the model of whoever writes the summaries takes; None when they are not known.

    Args:
        summarizer: An agent that writes them, or None for the agent whose history it is.
        window: What the model of that one takes.
    """
    if summarizer is None:
        return window

    known = getattr(getattr(summarizer, "model", None), "context_window", None)
    return known if isinstance(known, int) else None


async def _outcome(agent: Agent, request: ModelRequest) -> ModelOutcome:
    try:
        run = current_run()
    except RuntimeError:  # called by hand, between runs
        run = None

    if run is not None and run.agent is agent:
        return await run.ask_model(request, PURPOSE)

    assembly = Assembly()
    async for event in agent.model.stream(request):
        assembly.feed(event)

    return assembly.finish(lambda wanted, _taken: str(wanted))
