"""The consumer's side of `stream_async`: one task runs the invocation, and its events are handed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

from ropewalk.kits.aio.channel import Channel
from ropewalk.kits.events import dicts_of
from ropewalk.kits.result import AgentResult
from ropewalk.loop.invocation import invoke

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.invocation import CallOptions


async def stream(agent: Agent, options: CallOptions) -> AsyncIterator[dict[str, Any]]:
    """Yields the run's events as dicts, the result last. Closing the iterator ends the run and frees the agent."""
    channel = Channel()
    end: list[AgentResult | BaseException] = []
    task = asyncio.create_task(_settled(invoke(agent, options, channel), channel, end))
    result: AgentResult | None = None
    try:
        while await channel.wait():
            for event in channel.take():
                try:
                    delta = event["contentBlockDelta"]["delta"]  # type: ignore[index]
                    text = delta["text"]
                except (TypeError, KeyError):
                    for shown in dicts_of(event):
                        result = shown.get("result", result)
                        yield shown
                else:  # nearly all there is: nothing is looked at twice, nothing built that nobody wants
                    yield {"event": event}
                    yield {"data": text, "delta": delta}

        await task
        answer: Any = end.pop()
        if isinstance(answer, BaseException):
            raise answer

        if result is None:
            yield {"result": answer}  # answered at admission, without a run
    finally:
        answer = event = None  # type: ignore[assignment]  # an error's own frames must not refer to it
        if not task.done():
            task.add_done_callback(channel.forget)  # also when this one is cancelled again
            task.cancel()
            await asyncio.wait([task])

        channel.forget(task)


async def _settled(
    invocation: Awaitable[AgentResult], channel: Channel, end: list[AgentResult | BaseException]
) -> None:
    """The invocation's end as a value: a task must not raise SystemExit or KeyboardInterrupt into its event loop."""
    try:
        end.append(await invocation)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again in the consumer's task
        end.append(error)
        del end
    finally:
        channel.close()
