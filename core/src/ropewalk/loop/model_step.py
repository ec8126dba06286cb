"""The innermost step of a model call: consume the provider's stream and assemble the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from ropewalk.errors import ModelError
from ropewalk.kits.aio.streams import opened
from ropewalk.kits.calls.outcomes import ModelOutcome, Retry
from ropewalk.kits.messages.assembly import Assembly
from ropewalk.loop import gates
from ropewalk.model import ModelRequest
from ropewalk.types import StreamEvent

if TYPE_CHECKING:
    from ropewalk.run import Run

_CLOSE_SECONDS: Final = 1.0


async def call_model(run: Run, request: ModelRequest) -> ModelOutcome | Retry:
    """Runs one attempt: the end of the `around_model_call` chain. One that was answered before a pause is not repeated.

    Raises:
        ModelError: The stream is incomplete or malformed, or `call_next` was called twice.
        Exception: Whatever the model raises; it is noted in `run.model_error`, so that only such errors are retried.
    """
    if run.answered:
        raise ModelError("a hook called call_next twice in one attempt: return Retry(...) to ask for another attempt")

    run.answered = True
    guarded = bool(run.hooks.plan.intervene)
    if run.outcome is not None:
        return await gates.after_model(run, run.outcome) if guarded and not run.outcome_gated else run.outcome

    if run.journal:
        run.journal.add("model_started", {"cycle": run.cycle, "attempt": run.attempt, "purpose": request.purpose})

    if guarded:
        request, refused = await gates.before_model(run, request)
        if refused is not None:
            return refused

    assembly = Assembly()
    try:
        outcome = await _consume(run, request, assembly)
    except Exception as error:
        run.model_error = error if error is not run.delta_error else None  # a follower's error is none of the model's
        run.metrics.add_usage(assembly.usage, 0)
        raise

    run.metrics.add_usage(outcome.usage, outcome.latency_ms)
    if run.journal:
        run.journal.add("model_ended", _ended(run, request, outcome))

    run.outcome, run.outcome_gated = outcome, not guarded
    return await gates.after_model(run, outcome) if guarded else outcome


def _ended(run: Run, request: ModelRequest, outcome: ModelOutcome) -> dict[str, Any]:
    told = {"stop_reason": outcome.stop_reason, "usage": outcome.usage, "input_errors": outcome.input_errors}
    return {"cycle": run.cycle, "attempt": run.attempt, "purpose": request.purpose, **told}


async def _consume(run: Run, request: ModelRequest, assembly: Assembly) -> ModelOutcome:  # noqa: C901, PLR0912
    # Two loops side by side: a test more, or a coroutine more, would cost every delta.
    if run.cancelled:
        return assembly.cancelled()

    stream = opened(run.agent.model.stream(request))
    feed, follow, cancellation = assembly.feed, run.follower(), run.cancellation
    ended = False
    try:
        if follow is None:
            async for raw in stream:
                feed(raw)
                if cancellation.requested:
                    break
            else:
                ended = True
        else:
            run.streamed = True
            async for raw in stream:
                if follow(feed(raw) or raw):
                    await run.let_consumer_catch_up()

                if cancellation.requested:
                    break
            else:
                ended = True
    except asyncio.CancelledError as error:
        if not run.cancellation.claim():
            if run.cancellation.comes_from_outside():
                raise

            raise ModelError("the model raised CancelledError and nobody cancelled it: see its cause") from error
    finally:
        run.cancellation.settle()
        if not ended:
            await _close(run, stream)

    return assembly.finish(run.history.free_id) if ended else assembly.cancelled()


async def _close(run: Run, stream: AsyncIterator[StreamEvent]) -> None:
    """Ends a stream that was not read to its end, so that the provider stops working and frees its connection."""
    aclose = getattr(stream, "aclose", None)
    if aclose is None:
        return

    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await aclose()
    except asyncio.CancelledError:
        if not run.cancellation.claim() and run.cancellation.comes_from_outside():
            raise
    except Exception:  # noqa: BLE001, S110 - what led here is on its way to the caller
        pass
