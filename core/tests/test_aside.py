"""Calls of the model beside the conversation: the same hooks, gates, retries and cancel; nothing enters the history."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from kernel_fakes import FakeModel, collect, make_plugin, texts

from ropewalk import Agent, HistoryError, ModelError, ModelRequest, ModelThrottledException, current_run
from ropewalk.kits.calls.verdicts import Guide, Refuse

QUESTION = ModelRequest(messages=[{"role": "user", "content": [{"text": "sum it up"}]}])


def asking(answers, purpose="summary"):
    """A plugin that asks the model once, before the first turn."""

    async def around_invocation(self, invocation, call_next):
        answers.append(await current_run().ask_model(QUESTION, purpose))
        return await call_next(invocation)

    return make_plugin("asking", around_invocation=around_invocation)


async def test_the_answer_comes_back_and_the_history_and_followers_know_nothing_of_it():
    answers = []
    model = FakeModel("a summary", "hello")
    agent = Agent(model=model, plugins=[asking(answers)])

    events = await collect(agent, "go")

    assert texts(answers[0].message) == ["a summary"]
    assert [texts(message) for message in agent.messages] == [["go"], ["hello"]]
    assert [event["data"] for event in events if event.get("data")] == ["hello"]
    assert events[-1]["result"].metrics.accumulated_usage["totalTokens"] == 10
    assert model.requests[0] == [{"role": "user", "content": [{"text": "sum it up"}]}]


def test_hooks_see_what_it_is_for():
    seen = []

    async def around_model_call(self, request, call_next):
        seen.append(request.purpose)
        return await call_next(request)

    agent = Agent(
        model=FakeModel("s", "hello"), plugins=[asking([]), make_plugin("m", around_model_call=around_model_call)]
    )
    agent("go")

    assert seen == ["summary", "turn"]


def test_it_is_retried_as_any_other_call():
    async def decide_retry(self, failure):
        return 0.0 if failure.attempt < 3 else None

    answers = []
    model = FakeModel(ModelThrottledException("slow"), ModelThrottledException("slow"), "s", "hello")
    agent = Agent(model=model, plugins=[asking(answers), make_plugin("r", decide_retry=decide_retry)])
    agent("go")

    assert texts(answers[0].message) == ["s"]
    assert model.calls == 4


def test_a_gate_may_refuse_it():
    async def intervene(self, moment, subject):
        return Refuse("no") if moment == "before_model_call" and subject.purpose == "summary" else None

    answers = []
    model = FakeModel("hello")
    agent = Agent(model=model, plugins=[asking(answers), make_plugin("g", intervene=intervene)])
    agent("go")

    assert texts(answers[0].message) == ["DENIED: no"]
    assert model.calls == 1


@pytest.mark.parametrize("wanted", ["before_model_call", "after_model_call"])
def test_guidance_joins_its_last_user_message_and_stays_out_of_the_history(wanted):
    given = []

    async def intervene(self, moment, subject):
        if moment == wanted and len(given) < 2 and current_run().position == "input":
            given.append(moment)
            return Guide(f"hint {len(given)}")

        return None

    answers = []
    model = FakeModel("first", "second", "third", "hello")
    agent = Agent(model=model, plugins=[asking(answers), make_plugin("g", intervene=intervene)])
    agent("go")

    last = model.requests[0] if wanted == "before_model_call" else model.requests[2]
    assert [message["role"] for message in last] == ["user"]
    assert texts(last[0])[0] == "sum it up"
    assert texts(last[0])[1:] == (["hint 1"] if wanted == "before_model_call" else ["hint 1", "hint 2"])
    assert texts(agent.messages[0]) == ["go"]


async def test_a_cancel_reaches_it():
    reached = asyncio.Event()

    async def silent():
        reached.set()
        await asyncio.sleep(60)
        yield {}

    answers = []
    agent = Agent(model=FakeModel(silent, "hello"), plugins=[asking(answers)])
    task = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.wait_for(reached.wait(), 10)
    agent.cancel()
    result = await asyncio.wait_for(task, 10)

    assert result.stop_reason == "cancelled"
    assert [outcome.stop_reason for outcome in answers] in ([], ["cancelled"])
    assert agent.messages == []


def test_a_hook_that_edits_the_conversation_meanwhile_is_told_and_the_plugin_that_asks_may_still_edit_it():
    told = []

    async def meddling(self, request, call_next, agent):
        if request.purpose == "summary":
            try:
                agent.messages.clear()
            except HistoryError as error:
                told.append(str(error))

        return await call_next(request)

    async def summing_up(self, request, reason, agent):
        if reason == "before_model":
            outcome = await current_run().ask_model(QUESTION, "summary")
            agent.messages[0] = {"role": "user", "content": outcome.message["content"]}

    agent = Agent(
        model=FakeModel("in short", "hello"),
        plugins=[make_plugin("m", around_model_call=meddling), make_plugin("s", manage_context=summing_up)],
    )
    agent("a long story")

    assert [each.partition(":")[0] for each in told] == ["agent.messages was edited while the agent runs"]
    assert [texts(message) for message in agent.messages] == [["in short"], ["hello"]]
    agent.messages.clear()


@pytest.mark.parametrize("ends", ["refused", "failed", "cancelled"])
def test_a_call_that_comes_to_nothing_leaves_the_conversation_as_open_as_it_was(ends):
    async def around_model_call(self, request, call_next, agent):
        if request.purpose == "summary" and ends == "cancelled":
            raise asyncio.CancelledError

        return await call_next(request)

    async def intervene(self, moment, subject):
        return Refuse("no") if moment == "before_model_call" and ends == "refused" else None

    async def manage_context(self, request, reason, agent):
        if reason == "after_invocation":
            with contextlib.suppress(ModelError, asyncio.CancelledError):
                await current_run().ask_model(QUESTION, "summary")

            del agent.messages[-1]

    agent = Agent(
        model=FakeModel("hello", ModelError("down")) if ends != "refused" else FakeModel(),
        plugins=[
            make_plugin("a", around_model_call=around_model_call),
            make_plugin("g", intervene=intervene),
            make_plugin("s", manage_context=manage_context),
        ],
    )
    agent("go")

    assert [texts(message) for message in agent.messages] == [["go"]]


@pytest.mark.parametrize("rounds", [(3, 6), (6, 3)])
async def test_two_calls_at_once_leave_the_conversation_as_open_as_it_was(rounds):
    waits, told = iter(rounds), []

    async def around_model_call(self, request, call_next):
        if request.purpose == "summary":
            for _ in range(next(waits)):
                await asyncio.sleep(0)

        return await call_next(request)

    async def manage_context(self, request, reason, agent):
        if reason == "before_model":
            await asyncio.gather(*(current_run().ask_model(QUESTION, "summary") for _ in range(2)))
            agent.messages[0] = {"role": "user", "content": [{"text": "short"}]}
            told.append(texts(agent.messages[0]))

    plugin = make_plugin(manage_context=manage_context, around_model_call=around_model_call)
    agent = Agent(model=FakeModel("a", "b", "hello"), plugins=[plugin])
    await agent.invoke_async("go")

    assert told == [["short"]]
    with pytest.raises(StopIteration):
        next(waits)
