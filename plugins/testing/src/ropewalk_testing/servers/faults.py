"""The words for what goes wrong on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

from ropewalk.types import ContentBlock
from ropewalk_testing.errors import ScriptError
from ropewalk_testing.turns import Stall, as_blocks


@dataclass(frozen=True, slots=True)
class HttpFault:
    """An answer with an HTTP error; made by `http_fault(...)`."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class StreamFault:
    """A stream that says, once it is open, that it failed; made by `stream_fault(...)`."""

    code: str
    message: str
    after: tuple[ContentBlock, ...] = ()
    modelled: bool = True


@dataclass(frozen=True, slots=True)
class Pause:
    """A silence between two parts of a raw stream; made by `pause(...)`."""

    stall: Stall


@final
class Cut:
    """The end of the line between two parts of a raw stream."""

    def __repr__(self) -> str:
        """Its name in scripts."""
        return "CUT"


CUT: Final = Cut()
"""In `turn(raw=[..., CUT])`: the socket is closed here, without the end of the stream."""

Part: TypeAlias = bytes | Pause | Cut
"""What a server does next in a stream."""


def http_fault(
    status: int,
    code: str = "ThrottlingException",
    message: str = "a scripted fault",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> HttpFault:
    """An HTTP error in place of an answer.

    Args:
        status: The HTTP status.
        code: The provider's error code: the `x-amzn-ErrorType` header of Bedrock, `code` and `type` of OpenAI.
        message: The provider's text.
        headers: More headers, such as `{"Retry-After": "3"}`.
        body: The body as it is, such as an HTML page, in place of the provider's JSON; code and message are not sent.

    Returns:
        The turn, for a script.
    """
    if not 200 <= status <= 599:  # noqa: PLR2004 - what HTTP calls a final status
        raise ScriptError(f"http_fault({status}): give an HTTP status from 200 to 599")

    return HttpFault(status, code, message, dict(headers or {}), body)


def stream_fault(
    code: str, message: str = "a scripted fault", *, after: Sequence[str | ContentBlock] = (), modelled: bool = True
) -> StreamFault:
    """A failure inside a stream that has begun.

    Args:
        code: For Bedrock the exception's type in the stream, such as `throttlingException` or
            `modelStreamErrorException`; for OpenAI `code` and `type` of the error chunk.
        message: The provider's text.
        after: Blocks that are streamed before it.
        modelled: Bedrock only: False sends an `error` message in place of a modelled exception.

    Returns:
        The turn, for a script.
    """
    return StreamFault(code, message, as_blocks(after), modelled)


def pause(stall: Stall) -> Pause:
    """Falls silent within a raw stream: for seconds, until an event, or until `server.release()` when it is True."""
    return Pause(stall)


def as_parts(raw: Iterable[Any], encode: Any) -> list[Part]:
    """Parts of a raw stream: bytes, pauses and cuts as they are, anything else encoded."""
    return [each if isinstance(each, (bytes, Pause, Cut)) else encode(each) for each in raw]
