"""How many tokens a request will take, without counting a long conversation again for each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ropewalk.kits.messages.estimate import estimate_tokens

if TYPE_CHECKING:
    from ropewalk import ModelRequest, Usage
    from ropewalk.kits.state import JSONState

_SEEN: Final = "seen"
_TURN: Final = "turn"
_CHARS_PER_TOKEN: Final = 4


def estimate(request: ModelRequest, cell: JSONState) -> tuple[int, int]:
    """About what the model will read, and what it will write.

    A call beside the conversation, such as one for a summary, has messages of its own: it is counted by its size.

    Args:
        request: What will be sent.
        cell: The agent's own, in which `remember` has left what its last call used.
    """
    seen: dict[str, int] | None = cell.get(_SEEN)
    messages = request.messages
    if seen is None or seen["messages"] > len(messages) or request.purpose != _TURN:
        return by_size(request), 0 if seen is None else seen["written"]

    # The last answer is in the history now: it is known by the tokens that it took to write it.
    fresh = [messages[place] for place in range(seen["messages"] + 1, len(messages))]
    return seen["read"] + seen["written"] + estimate_tokens(fresh), seen["written"]


def remember(request: ModelRequest, usage: Usage, cell: JSONState) -> None:
    """Leaves what a call of the conversation has used, for the next estimate."""
    if request.purpose != _TURN:
        return

    total, written = usage["totalTokens"], usage["outputTokens"]
    cell.set(_SEEN, {"messages": len(request.messages), "read": total - written, "written": written})


def by_size(request: ModelRequest) -> int:
    """About what the model will read, by nothing but the request itself."""
    return estimate_tokens(request.messages) + _around(request)


def _around(request: ModelRequest) -> int:
    """The system prompt and the tools."""
    prompt = sum(len(block["text"]) for block in request.system if "text" in block)
    return (prompt + sum(map(_size, request.tool_specs))) // _CHARS_PER_TOKEN


def _size(value: Any) -> int:
    """Characters of a value, about as they are sent."""
    if isinstance(value, dict):
        return sum(len(str(key)) + _size(each) for key, each in value.items())

    return sum(map(_size, value)) if isinstance(value, list | tuple) else len(str(value))
