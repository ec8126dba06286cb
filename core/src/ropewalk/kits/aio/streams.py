"""A model's stream, whatever `stream()` returned."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

from ropewalk.errors import ModelError
from ropewalk.types import StreamEvent


def opened(stream: Any) -> AsyncIterator[StreamEvent]:
    """The iterator over what a model's `stream()` returned.

    Raises:
        ModelError: It is none.
    """
    if hasattr(stream, "__aiter__"):
        return stream.__aiter__()  # type: ignore[no-any-return]

    if inspect.iscoroutine(stream):
        stream.close()

    raise ModelError(
        f"the model's stream() returned {type(stream).__name__}, which is no async iterator: "
        "write it as an async generator"
    )
