"""The hook `admit`."""

from __future__ import annotations

import asyncio

from ropewalk import Agent, AgentResult, EventLoopMetrics, hookimpl
from ropewalk_testing import ScriptedModel, turn


class Busy:
    """Answers for an agent that is busy, instead of ConcurrencyException."""

    name = "busy"

    @hookimpl
    async def admit(self, options):
        message = {"role": "assistant", "content": [{"text": "Please call again later."}]}
        return AgentResult("end_turn", message, EventLoopMetrics(), {})


async def main():
    model = ScriptedModel([turn("Hello.", stall=True)])
    agent = Agent(model=model, plugins=[Busy()], callback_handler=None)
    first = asyncio.ensure_future(agent.invoke_async("Hello?"))
    await model.wait_stalled()
    assert str(await agent.invoke_async("Me too!")) == "Please call again later.\n"

    model.release()
    assert str(await first) == "Hello.\n"


asyncio.run(main())
