"""Words for streams: Converse's events, and the chunks of OpenAI's chat completions."""

from __future__ import annotations

from ropewalk_testing.servers import DONE

BEGIN = {"messageStart": {"role": "assistant"}}


def head(index, tool_use_id, name):
    start = {"toolUse": {"toolUseId": tool_use_id, "name": name}}
    return {"contentBlockStart": {"contentBlockIndex": index, "start": start}}


def args(index, piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}}


def said(index, piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": piece}}}


def thought(index, **piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"reasoningContent": piece}}}


def end(index):
    return {"contentBlockStop": {"contentBlockIndex": index}}


def stop(reason="tool_use"):
    return {"messageStop": {"stopReason": reason}}


def unindexed(event):
    """The same event without its block index."""
    ((key, value),) = event.items()
    return {key: {name: item for name, item in value.items() if name != "contentBlockIndex"}}


# -- chunks --------------------------------------------------------------------------------------------------------


def chunk(delta=None, finish=None):
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]}


def call(index=..., use_id=..., name=..., arguments=...):
    """A chunk with one piece of a tool call; what is not given is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    given = {key: value for key, value in (("index", index), ("id", use_id)) if value is not ...}
    return chunk({"tool_calls": [{**given, "type": "function", "function": function}]})


def words(piece):
    return chunk({"content": piece})


def thinking(**block):
    return chunk({"thinking_blocks": [{"type": "thinking", "thinking": "", **block}]})


END = [chunk({}, "stop"), DONE]
END_WITH_CALLS = [chunk({}, "tool_calls"), DONE]
