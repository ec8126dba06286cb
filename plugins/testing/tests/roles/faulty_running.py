"""Executors, strategies and managers: those that do everything right, and others with one fault each."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import ClassVar

from ropewalk import HistoryEdit, hookimpl
from ropewalk.kits.context import closed, conversation, edits_of, is_pinned

# -- executors ---------------------------------------------------------------------------------------------------------


class Executor:
    """Runs all at once; when one is interrupted, the others end first."""

    name = "executor-under-test"

    @hookimpl
    async def execute_tools(self, batch, run_tool):
        return await self.run(batch, run_tool)

    async def run(self, batch, run_tool):
        tasks = [asyncio.ensure_future(run_tool(call)) for call in batch.calls]
        try:
            await asyncio.wait(tasks)
        except BaseException:
            for task in tasks:
                task.cancel()

            await asyncio.gather(*tasks, return_exceptions=True)
            raise

        return [task.result() for task in tasks]


class InTheOrderOfTheirEnd(Executor):
    async def run(self, batch, run_tool):
        return [await each for each in asyncio.as_completed([run_tool(call) for call in batch.calls])]


class RunsTwice(Executor):
    async def run(self, batch, run_tool):
        for call in batch.calls:
            await call.tool.invoke(call)

        return await super().run(batch, run_tool)


class OneByOne(Executor):
    async def run(self, batch, run_tool):
        return [await run_tool(call) for call in batch.calls]


class Backwards(Executor):
    async def run(self, batch, run_tool):
        return [await run_tool(call) for call in reversed(batch.calls)][::-1]


class PassesOverTheChain(Executor):
    async def run(self, batch, run_tool):
        return await asyncio.gather(*[call.tool.invoke(call) for call in batch.calls])


class LeavesTasks(Executor):
    kept: ClassVar[list] = []

    async def run(self, batch, run_tool):
        tasks = [asyncio.ensure_future(call.tool.invoke(call)) for call in batch.calls]
        self.kept.extend(tasks)
        return [await asyncio.shield(task) for task in tasks]


class RemembersTheBatch(Executor):
    async def run(self, batch, run_tool):
        self.batch, self.run_tool = batch, run_tool
        await asyncio.sleep(0)
        return [await self.run_tool(call) for call in self.batch.calls]


# -- strategies --------------------------------------------------------------------------------------------------------


class Strategy:
    """Three attempts, two seconds apart, or as long as the provider asks."""

    name = "strategy-under-test"
    most = 3

    @hookimpl
    async def decide_retry(self, failure):
        if not getattr(failure.error, "retryable", False) or failure.attempt >= self.most:
            return None

        asked = getattr(failure.error, "retry_after", None)
        usable = isinstance(asked, int | float) and not isinstance(asked, bool) and 0 <= asked < math.inf
        return max(2.0, asked) if usable else self.delay(failure)

    def delay(self, failure):
        return 2.0


class NeverRepeats(Strategy):
    most = 1


class RepeatsAll(Strategy):
    @hookimpl
    async def decide_retry(self, failure):
        return 1.0 if failure.attempt < self.most else None


class NeverGivesUp(Strategy):
    most = math.inf


class Overflows(Strategy):
    most = math.inf

    def delay(self, failure):
        return math.inf if failure.attempt >= 100 else 1.0


class Impatient(Strategy):
    @hookimpl
    async def decide_retry(self, failure):
        return 1.0 if getattr(failure.error, "retryable", False) and failure.attempt < self.most else None


class Credulous(Strategy):
    @hookimpl
    async def decide_retry(self, failure):
        if not getattr(failure.error, "retryable", False) or failure.attempt >= self.most:
            return None

        return getattr(failure.error, "retry_after", 1.0)


class CountsItself(Strategy):
    spent = 0

    @hookimpl
    async def decide_retry(self, failure):
        self.spent += 1
        return await super().decide_retry(failure) if self.spent < self.most else None


class WaitsItself(Strategy):
    @hookimpl
    async def decide_retry(self, failure):
        if not getattr(failure.error, "retryable", False) or failure.attempt >= self.most:
            return None

        for _ in range(3_000):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)

        return 0.0


# -- managers ----------------------------------------------------------------------------------------------------------


class Manager:
    """Drops the older half, but for the task and pins, when the model says that it is too much."""

    name = "manager-under-test"

    @hookimpl
    async def manage_context(self, request, reason, agent):
        messages = conversation(request, agent)
        if reason != "overflow" or len(messages) < 6:
            return None

        kept = set(range(len(messages) // 2, len(messages)))
        kept |= {i for i, m in enumerate(messages) if i == 0 or self.pinned(m)}
        kept = closed(messages, kept)
        after = [message if i in kept else None for i, message in enumerate(messages)]
        after[0] = self.first(after[0])
        return edits_of(request.ids, messages, after, "too much")

    def first(self, message):
        return message

    def pinned(self, message):
        return is_pinned(message)


class DropsTheNewest(Manager):
    @hookimpl
    async def manage_context(self, request, reason, agent):
        if reason != "before_model" or len(request.messages) < 4:
            return None

        last = request.messages[-1]
        if any("toolResult" in block for block in last["content"]):
            return None

        message = {"role": "user", "content": [{"text": "Something."}]}
        return [HistoryEdit(request.ids[-1], request.ids[-1], (message,), "shorter")]


class NeverMakesRoom(Manager):
    @hookimpl
    async def manage_context(self, request, reason, agent):
        return None


class ForgetsTheTask(Manager):
    def first(self, message):
        return message and {"role": "user", "content": [{"text": "They talked."}]}


class ForgetsPins(Manager):
    def pinned(self, message):
        return False


class DropsAllAtLast(Manager):
    @hookimpl
    async def manage_context(self, request, reason, agent):
        if reason != "overflow":
            return None

        message = {"role": "user", "content": [{"text": "Start anew."}]}
        if len(request.messages) == 1:
            return None

        return [HistoryEdit(request.ids[0], request.ids[-1], (message,), "all")]


class MixesAgents(Manager):
    seen = None

    @hookimpl
    async def manage_context(self, request, reason, agent):
        edits = await super().manage_context(request, reason, agent)
        if reason == "after_invocation":
            text = str(request.messages[-4:])
            before, self.seen = self.seen, text
            if before is not None:
                message = {"role": "user", "content": [{"text": before}]}
                return [HistoryEdit(request.ids[0], request.ids[0], (message,), "what was seen")]

        return edits
