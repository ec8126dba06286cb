"""The hook `decide_retry`."""

from __future__ import annotations

from ropewalk import Agent, ModelThrottledException, hookimpl
from ropewalk_testing import ScriptedModel


class Patience:
    """Tries three times, a little longer each time."""

    name = "patience"

    @hookimpl
    async def decide_retry(self, failure):
        if isinstance(failure.error, ModelThrottledException) and failure.attempt < 3:
            return 0.001 * failure.attempt  # seconds

        return None  # leave it to others; when nobody answers, the error is raised


model = ScriptedModel([ModelThrottledException("slow down"), "Hello."])
agent = Agent(model=model, plugins=[Patience()], retry_strategy=None, callback_handler=None)
assert str(agent("Hello?")) == "Hello.\n"
assert model.calls == 2
