"""Keeps LiteLLM from losing tool calls: it reads a missing index as 0, and drops a delta with a null function."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ropewalk_litellm.calls import NO_INDEX


def repaired(answer: Any) -> Any:
    """The stream, its provider's chunks completed before LiteLLM looks at them."""
    source = getattr(answer, "completion_stream", None)
    if source is not None and hasattr(source, "__aiter__") and hasattr(source, "close"):
        answer.completion_stream = _Repaired(source)

    return answer


class _Repaired:
    """An iterator over the same chunks, and closed with it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._chunks: AsyncIterator[Any] = source.__aiter__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __aiter__(self) -> _Repaired:
        return self

    async def __anext__(self) -> Any:
        chunk = await self._chunks.__anext__()
        for choice in getattr(chunk, "choices", None) or ():
            for call in getattr(getattr(choice, "delta", None), "tool_calls", None) or ():
                _complete(call)

        return chunk

    async def close(self) -> None:
        await self._source.close()


def _complete(call: Any) -> None:
    if getattr(call, "index", NO_INDEX) is None:
        call.index = NO_INDEX

    if getattr(call, "function", call) is None:
        call.function = type(call).model_validate({"index": 0, "function": {}}).function
