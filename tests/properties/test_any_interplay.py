"""Whatever an agent is made of and however its runs pause, fail or are cut off: nothing is lost or done twice.

Each example draws an agent, what its model says, what its hooks do, and what its caller does with it. Longer hunts:
`ROPEWALK_EXAMPLES=20000`.
"""

from __future__ import annotations

import asyncio
import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interplay_agent import Slow
from interplay_caller import Caller
from interplay_world import FEATURES, LUCK, SAID, STEPS, World

EXAMPLES = int(os.environ.get("ROPEWALK_EXAMPLES", "120"))


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(
    features=FEATURES,
    said=SAID,
    helper=SAID,
    luck=st.lists(st.sampled_from(LUCK), max_size=20) | st.just([]),
    steps=STEPS,
)
def test_nothing_is_lost_or_done_twice_whatever_happens_to_a_run(features, said, helper, luck, steps):
    async def live() -> None:
        caller = Caller(World(features, said, helper, luck), Slow())
        for deed, number in steps:
            await caller.act(deed, number)

        await caller.to_rest()
        await caller.reopen()
        caller.look()
        await caller.agent.aclose()

    asyncio.run(live())
