"""Whatever models, tools, hooks, callers and cancels do, the history stays valid and every tool use has one result."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropewalk import Agent, MaxTokensReachedException, ModelError, Retry, ToolsOutcome, error_result, hookimpl, tool
from ropewalk_testing import ScriptedModel, assert_valid_history, text, turn, use

EXAMPLES = int(os.environ.get("ROPEWALK_EXAMPLES", "150"))
WORDS = {"role": "user", "content": [{"text": "by hand"}]}
ANSWER = {"role": "assistant", "content": [{"text": "by hand, too"}]}
ASKS = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "hand", "name": "work", "input": {}}}]}
ORPHAN = {"role": "user", "content": [{"toolResult": {"toolUseId": "gone", "status": "success", "content": []}}]}

TURNS = {
    "text": "an answer",
    "one tool": use("work", {"how": "well"}),
    "two tools": [use("work", {"how": "well"}), use("work", {"how": "badly"})],
    "three of one id": [use("work", {"how": "well"}, id="same") for _ in range(3)],
    "text and tool": [text("let me see"), use("slow", {})],
    "unknown tool": use("nothing", {}),
    "bad name": use("not a name!", {}),
    "bad arguments": use("work", {"how": 3}),
    "a tool that exits": use("leave", {}),
    "error before": ModelError("down"),
    "error after": turn(text("half"), error=ModelError("gone")),
    "cut": turn(use("work", {}), cut=True),
    "max tokens": turn(text("half"), use("work", {}), stop="max_tokens"),
    "filtered": turn(text("half"), use("work", {}), stop="content_filtered"),
    "blank": "",
    "no event": turn(raw=[]),
    "nonsense": turn(raw=[{"contentBlockDelta": 3}]),
}
PROMPTS = {
    "text": "go",
    "nothing": None,
    "blocks": [{"text": "a"}, {"text": "b"}],
    "conversation": [WORDS, ANSWER, WORDS],
    "open conversation": [WORDS, ASKS],
    "orphan": [ORPHAN],
    "wrong": 3,
}
EDITS = {
    "none": lambda messages: None,
    "append a user": lambda messages: messages.append(WORDS),
    "append an assistant": lambda messages: messages.append(ANSWER),
    "append a tool use": lambda messages: messages.append(ASKS),
    "append an orphan": lambda messages: messages.append(ORPHAN),
    "drop the first": lambda messages: messages.__delitem__(slice(0, 1)),
    "drop the last": lambda messages: messages.__delitem__(slice(-1, None)),
    "reverse": lambda messages: messages.reverse(),
    "twice": lambda messages: messages.extend(list(messages)),
}
ACTIONS = [
    *["pass"] * 3,
    "raise before",
    "raise after",
    "deny",
    "again",
    "replace",
    "garbage",
    "cancel",
    "end the turn",
]
ENDS = (ModelError, MaxTokensReachedException, RuntimeError, ValueError, TypeError, SystemExit)
POINTS = ["around_model_call", "around_tools", "around_tool_call"]


@tool
async def work(how: str = "well") -> str:
    """Works well, or raises."""
    if how == "badly":
        raise RuntimeError(how)

    return how


@tool
async def slow() -> str:
    """Gives others a turn."""
    await asyncio.sleep(0)
    return "slow"


@tool
async def leave() -> str:
    """Ends the program, if one lets it."""
    raise SystemExit(3)


class Luck:
    """Takes part everywhere as the drawn actions say, one after the other."""

    name = "luck"

    def __init__(self, actions):
        self.actions = list(actions)
        self.running = {}

    def next(self, point, agent):
        action = self.actions.pop() if self.actions else "pass"
        if action == "cancel":
            agent.cancel()

        if action == "raise before":
            raise RuntimeError(f"before {point}")

        return action

    @hookimpl
    async def around_model_call(self, request, call_next, agent):
        action = self.next("around_model_call", agent)
        outcome = await call_next(request)
        if action == "raise after":
            raise RuntimeError("after the model")

        return {"again": Retry("once more"), "garbage": 3}.get(action, outcome)

    @hookimpl
    async def around_tools(self, batch, call_next, agent):
        action = self.next("around_tools", agent)
        if action == "deny":
            return ToolsOutcome([error_result(call.tool_use["toolUseId"], "no") for call in batch.calls])

        outcome = await call_next(batch)
        if action == "raise after":
            raise RuntimeError("after the tools")

        if action == "end the turn":
            return ToolsOutcome(outcome.results[:1], "that is enough")

        return ToolsOutcome([3, *outcome.results[1:]]) if action == "garbage" else outcome

    @hookimpl
    async def around_tool_call(self, call, call_next, agent):
        action = self.next("around_tool_call", agent)
        if action == "deny":
            return error_result(call.tool_use["toolUseId"], "no")

        result = await call_next(call)
        if action == "again":
            result = await call_next(call)

        if action == "raise after":
            raise RuntimeError("after the tool")

        return {"replace": {"content": [{"text": "other"}]}, "garbage": "nonsense"}.get(action, result)


CALL = st.tuples(
    st.sampled_from(sorted(PROMPTS)),
    st.sampled_from(sorted(EDITS)),
    st.sampled_from(["awaited", "streamed", "left early", "cancelled at once", "stopped from outside"]),
)


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(
    calls=st.lists(CALL, min_size=1, max_size=5),
    turns=st.lists(st.sampled_from(sorted(TURNS)), max_size=14),
    actions=st.lists(st.sampled_from(ACTIONS), max_size=20),
)
def test_any_run_leaves_a_valid_history_and_a_free_agent(calls, turns, actions):
    model = ScriptedModel([*(TURNS[name] for name in turns), *["the end"] * 40], record=False)
    agent = Agent(
        model=model, tools=[work, slow, leave], plugins=[Luck(actions)], callback_handler=None, retry_strategy=None
    )

    async def run():
        for prompt, edit, way in calls:
            EDITS[edit](agent.messages)
            with contextlib.suppress(
                ModelError, MaxTokensReachedException, RuntimeError, ValueError, TypeError, SystemExit
            ):
                await ask(agent, PROMPTS[prompt], way)

            assert_closed(agent)

        with contextlib.suppress(*ENDS):
            await agent.invoke_async("and now?")  # ConcurrencyException would mean that a run has kept the agent

        assert_valid_history(list(agent.history.view()))  # as it is sent: a caller's leading assistant stays in the log

    asyncio.run(run())


async def ask(agent, prompt, way):
    if way == "cancelled at once":
        agent.cancel()

    if way == "stopped from outside":
        task = asyncio.create_task(without_exit(agent, prompt))
        for _ in range(3):
            await asyncio.sleep(0)

        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
    elif way in ("streamed", "left early"):
        stream = agent.stream_async(prompt)
        async with contextlib.aclosing(stream):
            async for event in stream:
                if way == "left early" and "message" in event:
                    break
    else:
        await agent.invoke_async(prompt)


async def without_exit(agent, prompt):
    """A task that ends in SystemExit ends its event loop too: that is asyncio's rule, not the agent's."""
    with contextlib.suppress(SystemExit):
        await agent.invoke_async(prompt)


def assert_closed(agent):
    """No tool use is open once a call has ended, unless the caller's own edit was refused."""
    messages = agent.messages
    if messages.before_edit is None:
        assert agent.history.open_uses == {}
        uses = [b["toolUse"]["toolUseId"] for m in messages for b in m["content"] if "toolUse" in b]
        results = [b["toolResult"]["toolUseId"] for m in messages for b in m["content"] if "toolResult" in b]
        assert sorted(uses) == sorted(set(uses)), "an id was used twice"
        assert sorted(results) == sorted(uses), "one result per use"


@pytest.mark.parametrize("point", POINTS)
def test_the_hooks_of_this_test_are_really_called(point):
    luck = Luck([])
    seen = []
    luck.next = lambda at, _: seen.append(at) or "pass"
    agent = Agent(model=ScriptedModel([use("work", {}), "done"]), tools=[work], plugins=[luck], callback_handler=None)
    agent("go")

    assert point in seen
