"""Which messages callbacks are told of when others change the history meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Denied, HistoryEdit, Retry, Stop, hookimpl
from ropewalk_hooks import AfterToolCallEvent, MessageAddedEvent
from ropewalk_testing import ScriptedModel, use

OLD = [
    {"role": "user", "content": [{"text": "old question"}]},
    {"role": "assistant", "content": [{"text": "old answer"}]},
]


@pytest.fixture
def following(make_agent):
    """Builds an agent and the list of the texts that callbacks are told of."""

    def make(*turns, **parameters):
        told = []
        agent = make_agent(*turns, **parameters)
        agent.add_hook(lambda event: told.append(texts(event.message)), MessageAddedEvent)
        return agent, told

    return make


def texts(message):
    return " + ".join(block.get("text", "result" if "toolResult" in block else "use") for block in message["content"])


def test_messages_that_were_there_before_are_not_told_of(following):
    agent, told = following("new answer", messages=OLD)
    agent("new question")

    assert told == ["new question", "new answer"]


def test_what_a_callback_writes_to_a_message_stays_its_own(make_agent):
    agent = make_agent(use("echo", {"value": 1}, id="T1"), "answer", messages=OLD)
    told = []

    def write(event):
        told.append(event.message)
        event.message["content"][0].clear()
        event.message["content"].append({"text": "changed"})

    agent.add_hook(write, MessageAddedEvent)
    result = agent("question")

    assert len(told) == 4
    assert "changed" not in f"{list(agent.messages)} {agent.model.requests} {result}"
    assert texts(agent.messages[-1]) == "answer"


def test_no_prompt_is_no_message(following):
    agent, told = following("answer", messages=OLD[:1])
    agent()

    assert told == ["answer"]


def test_a_prompt_that_is_merged_into_the_last_message_is_told_of_as_the_whole(following):
    agent, told = following("answer", messages=OLD[:1])
    agent("more")

    assert told == ["old question + more", "answer"]


def test_a_prompt_of_several_messages_is_told_of_one_by_one(following):
    agent, told = following("answer")
    agent([*OLD, {"role": "user", "content": [{"text": "and now"}]}])

    assert told == ["old question", "old answer", "and now", "answer"]


class Window:
    """Drops all but the last message before each model call, or replaces the last."""

    name = "window"

    def __init__(self, replace):
        self.replace = replace

    @hookimpl
    async def manage_context(self, request, reason):
        if reason == "before_model" and len(request.ids) > 1:
            if not self.replace:
                return [HistoryEdit(request.ids[0], request.ids[-2], reason="test")]

            last = request.messages[-1]
            shorter = ({"role": "user", "content": [*last["content"][:1], {"text": "cut"}]},)
            return [HistoryEdit(request.ids[-1], request.ids[-1], shorter, "test")]

        return None


@pytest.mark.parametrize(
    ("replace", "expected"),
    [(False, ["question", "use", "result", "answer"]), (True, ["question + cut", "use", "result", "answer"])],
)
def test_edits_of_context_plugins_are_no_added_messages(following, replace, expected):
    agent, told = following(use("add", {"a": 1}, id="A"), "answer", messages=OLD, plugins=[Window(replace)])
    agent("question")

    assert told == expected


def test_a_message_that_a_plugin_has_the_user_say_is_told_of(following):
    class Again:
        name = "again"

        @hookimpl
        async def decide_continue(self, message):
            return [{"text": "say it better"}] if message["content"] == [{"text": "bad"}] else None

    agent, told = following("bad", "good", plugins=[Again()])
    agent("question")

    assert told == ["question", "bad", "say it better", "good"]


def test_feedback_that_is_merged_before_another_attempt_is_told_of(following):
    class Guide:
        name = "guide"

        @hookimpl
        async def around_model_call(self, request, call_next):
            outcome = await call_next(request)
            bad = outcome.message["content"] == [{"text": "bad"}]
            return Retry("bad", feedback=({"text": "better"},)) if bad else outcome

    agent, told = following("bad", "good", plugins=[Guide()])
    agent("question")

    assert told == ["question", "question + better", "good"]


def test_a_run_that_stops_before_its_first_model_call_has_told_of_its_input(following):
    class Full:
        name = "full"

        @hookimpl
        async def decide_stop(self):
            return Stop("limit_turns")

    agent, told = following("never", plugins=[Full()])
    agent("question")

    assert told == ["question"]


def test_what_is_taken_back_is_not_told_of(following):
    class No:
        name = "no"

        @hookimpl
        async def around_invocation(self):
            return Denied("no")

    agent, told = following("never", plugins=[No()], messages=OLD[:1])
    agent("question")
    assert told == []

    agent, told = following("never", messages=OLD[:1])
    agent.cancel()
    agent("question")
    assert told == []


async def test_a_run_beside_another_tells_of_its_own_messages(following):
    class Together:
        name = "together"

        @hookimpl
        async def admit(self):
            from ropewalk.kits.calls.invocation import REENTRANT

            return REENTRANT

    meeting = asyncio.Barrier(2)
    agent, told = following(messages=OLD, plugins=[Together(), "-concurrency"])

    async def meet(event):
        await meeting.wait()

    agent.add_hook(meet, AfterToolCallEvent)

    def answer(request):
        last = request.messages[-1]["content"][-1]
        return use("add", {"a": 1}) if "text" in last else "answer"

    agent.model = ScriptedModel(answer)
    async with asyncio.timeout(10):
        await asyncio.gather(agent.invoke_async("first"), agent.invoke_async("second"))

    # the second ran on a branch of its own, which knows nothing of the first
    assert sorted(told) == sorted(["first", "second", *["use", "result", "answer"] * 2])
