"""Tools and tool providers: those that do everything right, and others with one fault each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math

# -- tools -------------------------------------------------------------------------------------------------------------


class Tool:
    """Says a word again."""

    tool_name = "say"

    def __init__(self):
        self.shared = {"status": "success", "content": [{"text": "shared"}]}
        self.loop = None

    @property
    def tool_spec(self):
        return {"name": "say", "description": "Says a word again.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        word = call.tool_use["input"]["word"]
        if word == "wait":
            await asyncio.Event().wait()

        if not isinstance(word, str):
            return self.result(call, "word is a text", status="error")

        return self.result(call, word)

    def result(self, call, text, status="success"):
        return {"toolUseId": call.tool_use["toolUseId"], "status": status, "content": [{"text": text}]}


class BadName(Tool):
    tool_name = "say it"


class OtherName(Tool):
    @property
    def tool_spec(self):
        return {**super().tool_spec, "name": "other"}


class NoJsonInItsSpec(Tool):
    @property
    def tool_spec(self):
        return {**super().tool_spec, "inputSchema": {"json": {"type": "object", "default": {"x": math.nan}}}}


class ChangingSpec(Tool):
    count = itertools.count()

    @property
    def tool_spec(self):
        return {**super().tool_spec, "description": f"Version {next(self.count)}"}


class OddEffect(Tool):
    effect = "sometimes"


class ReturnsText(Tool):
    def result(self, call, text, status="success"):
        return text


class WrongId(Tool):
    def result(self, call, text, status="success"):
        return {**super().result(call, text, status), "toolUseId": "T9"}


class NoJsonInItsResult(Tool):
    def result(self, call, text, status="success"):
        return {**super().result(call, text, status), "content": [{"json": {"x": math.inf}}]}


class WritesToItsInput(Tool):
    async def invoke(self, call):
        result = await super().invoke(call)
        call.tool_use["input"]["word"] = "changed"
        return result


class OneResultForAll(Tool):
    def result(self, call, text, status="success"):
        self.shared["toolUseId"] = call.tool_use["toolUseId"]
        return self.shared


class OneContentForAll(Tool):
    def result(self, call, text, status="success"):
        return {**super().result(call, text, status), "content": self.shared["content"]}


class RemembersTheId(Tool):
    async def invoke(self, call):
        self.call = call
        await asyncio.sleep(0)
        return self.result(self.call, "hello")


class BelongsToALoop(Tool):
    async def invoke(self, call):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")

        return await super().invoke(call)


class SucceedsAlways(Tool):
    def result(self, call, text, status="success"):
        return super().result(call, text)


class NotDirect(Tool):
    async def invoke(self, call):
        if call.direct:
            raise RuntimeError("models only")

        return await super().invoke(call)


class WaitsForEver(Tool):
    async def invoke(self, call):
        for _ in range(3_000 if call.tool_use["input"]["word"] == "wait" else 0):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)

        return self.result(call, "waited")


# -- providers ---------------------------------------------------------------------------------------------------------


class Provider:
    """Brings one tool."""

    def __init__(self):
        self.consumers = []
        self.opened = False

    async def load_tools(self, **kwargs):
        self.opened = True
        return [Provided(self)]

    def add_consumer(self, consumer_id, **kwargs):
        self.consumers.append(consumer_id)

    def remove_consumer(self, consumer_id, **kwargs):
        self.consumers.remove(consumer_id)
        self.opened = self.opened and bool(self.consumers)


class Provided(Tool):
    def __init__(self, provider):
        super().__init__()
        self.provider = provider

    async def invoke(self, call):
        if not self.provider.opened:
            raise RuntimeError("closed")

        return await super().invoke(call)


class BringsNone(Provider):
    async def load_tools(self, **kwargs):
        await super().load_tools()
        return []


class BringsTwice(Provider):
    async def load_tools(self, **kwargs):
        return [*await super().load_tools(), *await super().load_tools()]


class BringsOnce(Provider):
    async def load_tools(self, **kwargs):
        loaded = await super().load_tools()
        return loaded if len(self.consumers) == 1 else [BadName(), *loaded]


class ClosesAtOnce(Provider):
    def remove_consumer(self, consumer_id, **kwargs):
        self.consumers.remove(consumer_id)
        self.opened = False


class NeverCloses(Provider):
    def remove_consumer(self, consumer_id, **kwargs):
        self.consumers.remove(consumer_id)


class OpensEarly(Provider):
    def add_consumer(self, consumer_id, **kwargs):
        super().add_consumer(consumer_id)
        self.opened = True

    def remove_consumer(self, consumer_id, **kwargs):
        self.consumers.remove(consumer_id)


class OpensOnce(Provider):
    spent = False

    async def load_tools(self, **kwargs):
        loaded = await super().load_tools()
        self.opened = not self.spent
        return loaded

    def remove_consumer(self, consumer_id, **kwargs):
        super().remove_consumer(consumer_id)
        self.spent = not self.consumers


class BrokenTools(Provider):
    async def load_tools(self, **kwargs):
        await super().load_tools()
        return [ReturnsText()]
