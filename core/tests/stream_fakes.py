"""Stream events of a model, and what the kernel makes of them."""

from __future__ import annotations

from ropewalk.kits.messages.assembly import Assembly
from ropewalk.kits.messages.history import History

USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}


def assembled(events, history=None):
    assembly = Assembly()
    for event in events:
        assembly.feed(event)

    return assembly.finish((history or History()).free_id)


def start(index, tool_use_id, name):
    head = {"toolUse": {"toolUseId": tool_use_id, "name": name}}
    return {"contentBlockStart": {"contentBlockIndex": index, "start": head}}


def delta(index, **piece):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}


def arguments(index, text):
    return delta(index, toolUse={"input": text})


def thinking(index, **piece):
    return delta(index, reasoningContent=piece)


def stop(index):
    return {"contentBlockStop": {"contentBlockIndex": index}}


def end(reason="end_turn"):
    return {"messageStop": {"stopReason": reason}}


def content(*events, reason="end_turn"):
    return assembled([*events, end(reason)]).message["content"]
