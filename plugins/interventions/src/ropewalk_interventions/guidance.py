"""Guidance for the model: bounded, and kept in the conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ropewalk import ModelRequest, current_run
from ropewalk.kits.calls.verdicts import Replace
from ropewalk_interventions.errors import GuidanceLimitError

if TYPE_CHECKING:
    from ropewalk.run import Run
    from ropewalk.types import ContentBlock

_given: WeakKeyDictionary[Run, tuple[int, int]] = WeakKeyDictionary()
"""For each run that is guided, the cycle and how often the model was guided in it."""


def count(most: int, text: str) -> None:
    """Notes that the model is guided.

    Raises:
        GuidanceLimitError: It was guided `most` times in this turn already.
    """
    run = current_run()
    cycle, times = _given.get(run, (run.cycle, 0))
    times = times if cycle == run.cycle else 0
    if times >= most:
        raise GuidanceLimitError(
            f"intervention handlers guided the model {times} times in one turn and want to once more ({text!r:.80}): "
            "make the guidance one that the model can follow, or raise max_guidance of the plugin interventions "
            f"(now {most})"
        )

    _given[run] = (run.cycle, times + 1)


async def added(request: ModelRequest, block: ContentBlock) -> Replace:
    """A request that handlers have changed, with guidance too; the guidance alone is kept in the conversation."""
    run = current_run()
    if request.purpose == "turn":
        run.history.add_user([block])
        await run.commit()

    messages = list(request.messages)
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], block]}
    else:
        messages.append({"role": "user", "content": [block]})

    return Replace(replace(request, messages=messages))
