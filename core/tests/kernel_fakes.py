"""Models, tools and plugins of the kernel's own tests, so that they need no plugin."""

from __future__ import annotations

import asyncio
import inspect
import json
import re

from ropewalk import hookimpl
from ropewalk.kits.aio.threads import in_thread

LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


# -- turns -------------------------------------------------------------------------------------------------------


def use(name, arguments=None, tool_use_id=None):
    """A tool use of a turn."""
    return {"use": name, "input": {} if arguments is None else arguments, "id": tool_use_id}


def events_of(turn, number):
    """The stream events of one turn: a text, a use, or a list of them."""
    blocks = turn if isinstance(turn, list) else [turn]
    events = [{"messageStart": {"role": "assistant"}}]
    asks = False
    for index, block in enumerate(blocks):
        if isinstance(block, str):
            events.append({"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": block}}})
        else:
            asks = True
            head = {"toolUseId": block["id"] or f"T{number}-{index}", "name": block["use"]}
            arguments = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            events.append({"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": head}}})
            delta = {"toolUse": {"input": arguments}}
            events.append({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})

        events.append({"contentBlockStop": {"contentBlockIndex": index}})

    events.append({"messageStop": {"stopReason": "tool_use" if asks else "end_turn"}})
    usage = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
    events.append({"metadata": {"usage": usage, "metrics": {"latencyMs": 7}}})
    return events


class FakeModel:
    """Plays turns. A turn is a text, a use, a list of both, an exception, a list of raw events, or a function."""

    context_window = 1000

    def __init__(self, *turns):
        self.turns = list(turns)
        self.requests = []
        self.calls = 0

    async def stream(self, request):
        self.requests.append([dict(message) for message in request.messages])
        self.calls += 1
        assert self.turns, f"the model was called {self.calls} times and has no turn left"
        turn = self.turns.pop(0)
        if inspect.isasyncgenfunction(turn):
            async for event in turn():
                yield event

            return

        if isinstance(turn, BaseException):
            try:
                raise turn
            finally:
                del turn  # or the error's own frame would refer to it

        for event in turn if is_raw(turn) else events_of(turn, self.calls):
            yield event


def is_raw(turn):
    return isinstance(turn, list) and all(isinstance(e, dict) and "use" not in e for e in turn) and bool(turn)


class LoopingModel:
    """Asks for the tool in all turns but every `every`-th; keeps nothing."""

    context_window = None

    def __init__(self, every=2, name="step", watch=None):
        self.calls = 0
        self.every = every
        self.name = name
        self.watch = watch

    async def stream(self, request):
        self.calls += 1
        if self.watch is not None:
            self.watch(self.calls)

        turn = "done" if self.calls % self.every == 0 else use(self.name)
        for event in events_of(turn, self.calls):
            yield event


# -- tools -------------------------------------------------------------------------------------------------------


class FakeTool:
    """A tool around `body(call)`: async bodies are awaited, others run in a worker thread."""

    def __init__(self, name, body=lambda call: "ok"):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}
        self.body = body
        self.calls = 0

    async def invoke(self, call):
        self.calls += 1
        if inspect.iscoroutinefunction(self.body):
            answer = await self.body(call)
        else:
            answer = await in_thread(self.body, call)

        if isinstance(answer, dict):
            return answer

        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": str(answer)}]}


# -- plugins -----------------------------------------------------------------------------------------------------


def make_plugin(plugin_name="fake", /, *, tier=None, **implementations):
    """A plugin of one class of its own, with each function marked as the hook of its name."""
    body = {hook: hookimpl(function) for hook, function in implementations.items()}
    if tier is not None:
        body["tier"] = tier

    return type("FakePlugin", (), {"name": plugin_name, **body})()


async def _execute_at_once(self, batch, run_tool):
    tasks = [asyncio.ensure_future(run_tool(call)) for call in batch.calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()

        await asyncio.gather(*tasks, return_exceptions=True)
        del task, tasks  # what they raised would refer to them


def parallel():
    """An executor that runs the calls of one message at the same time."""
    return make_plugin("parallel", execute_tools=_execute_at_once)


# -- what a valid history is, written down a second time ---------------------------------------------------------


def problems(messages, *, open_tail=False):  # noqa: C901, PLR0912 - one rule per branch
    """What is wrong with a history; an empty list when it is valid."""
    found = []
    seen = set()
    pending = []
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if at and messages[at - 1]["role"] == role:
            found.append(f"{at}: two {role} messages in a row")

        results = [b["toolResult"]["toolUseId"] for b in content if "toolResult" in b]
        uses = [b["toolUse"]["toolUseId"] for b in content if "toolUse" in b]
        if role == "user":
            if sorted(results) != sorted(pending):
                found.append(f"{at}: results {results} for uses {pending}")

            if uses:
                found.append(f"{at}: uses in a user message")

            if any("toolResult" in b for b in content[len(results) :]):
                found.append(f"{at}: results stand behind other blocks")

            pending = []
        else:
            if pending:
                found.append(f"{at}: uses {pending} have no results")

            if results:
                found.append(f"{at}: results in an assistant message")

            pending = uses

        for use_id in uses:
            if use_id in seen:
                found.append(f"{at}: id {use_id} again")

            if not (isinstance(use_id, str) and LEGAL_ID.fullmatch(use_id)):
                found.append(f"{at}: id {use_id!r} is illegal")

            seen.add(use_id)

    if pending and not open_tail:
        found.append(f"uses {pending} at the end have no results")

    return found


def results_of(messages):
    """Text of each tool result by id, its first piece."""
    return {
        b["toolResult"]["toolUseId"]: b["toolResult"]["content"][0].get("text")
        for m in messages
        for b in m["content"]
        if "toolResult" in b
    }


def statuses_of(messages):
    """Status of each tool result by id."""
    return {
        b["toolResult"]["toolUseId"]: b["toolResult"]["status"]
        for m in messages
        for b in m["content"]
        if "toolResult" in b
    }


def texts(message):
    """The texts of a message."""
    return [b["text"] for b in message["content"] if "text" in b]


# -- ways to call ------------------------------------------------------------------------------------------------


async def collect(agent, prompt=None, **options):
    """The events of one streamed run."""
    return [event async for event in agent.stream_async(prompt, **options)]


def called(agent, prompt=None, **options):
    return agent(prompt, **options)


def awaited(agent, prompt=None, **options):
    return asyncio.run(agent.invoke_async(prompt, **options))


def streamed(agent, prompt=None, **options):
    return asyncio.run(collect(agent, prompt, **options))[-1]["result"]
