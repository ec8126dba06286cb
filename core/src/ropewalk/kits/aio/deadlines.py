"""Waits for somebody else's code for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

T = TypeVar("T")

LATE: Final = object()
"""The answer of what did not answer in time."""


async def within(seconds: float, asked: Awaitable[T]) -> T | object:
    """Awaits something in a task of its own: what swallows its cancellation is left behind.

    Args:
        seconds: How long.
        asked: What is awaited.

    Returns:
        What it returns; LATE when it is cut off.

    Raises:
        BaseException: Whatever it raises, SystemExit and KeyboardInterrupt too.
    """
    end: list[T | BaseException] = []
    failed: list[bool] = []
    task = asyncio.create_task(_settled(asked, end, failed))
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            task.cancel()

    if not task.done():
        return LATE

    if not end:
        raise asyncio.CancelledError  # it raised that itself

    answer = end.pop()
    if not failed:
        return answer

    try:
        raise answer  # type: ignore[misc]  # it has failed with it
    finally:
        del answer  # or the error's own frame would refer to it


async def _settled(asked: Awaitable[T], end: list[T | BaseException], failed: list[bool]) -> None:
    """The end as a value: SystemExit in a task tears down the event loop, and nobody fetches a late error."""
    try:
        end.append(await asked)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again by who waits
        end.append(error)
        failed.append(True)
        del end  # or the error's own frame would refer to it
