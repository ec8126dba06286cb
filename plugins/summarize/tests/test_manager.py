"""Summaries in runs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import (
    Agent,
    AgentResult,
    ContextWindowOverflowException,
    EventLoopMetrics,
    SummarizingConversationManager,
    hookimpl,
)
from ropewalk.errors import ModelThrottledException
from ropewalk.kits.messages.estimate import estimate_tokens
from ropewalk_summarize import SummaryError
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


def full():
    return ContextWindowOverflowException("prompt is too long")


AT_HALF = {"compression_threshold": 0.5}


def first_text(agent):
    return agent.messages[0]["content"][0]["text"]


def summaries(model):
    return [request for request in model.requests if request.purpose == "summarize"]


# -- after an overflow ---------------------------------------------------------------------------------------------


def test_an_overflow_makes_a_summary_and_the_call_is_repeated(agent_of, chat):
    agent, model = agent_of([full(), "In short.", "Answer."], chat(20))

    result = agent("Go on.")

    assert str(result) == "Answer.\n"
    assert first_text(agent).endswith("In short.")
    assert_valid_history(agent.messages)
    assert [request.purpose for request in model.requests] == ["turn", "summarize", "turn"]


def test_the_recent_messages_stay_word_for_word(agent_of, chat):
    before = chat(20)
    agent, _ = agent_of([full(), "In short.", "Answer."], before, preserve_recent_messages=6)

    agent("Go on.")

    assert agent.messages[-7:-2] == before[-5:]


def test_the_request_for_it_is_text_without_tools(agent_of, chat):
    calls = []
    for i in range(6):
        calls += [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": f"t{i}", "name": "look", "input": {"at": i}}}]},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": f"t{i}", "status": "success", "content": [{"text": "seen " * 50}]}}
                ],
            },
        ]
    agent, model = agent_of([full(), "In short.", "Answer."], [chat(1)[0], *calls, *chat(12)[1:]])

    agent("Go on.")

    (request,) = summaries(model)
    assert request.tool_specs == ()
    assert [list(block) for message in request.messages for block in message["content"]] == [["text"]]
    assert 'Assistant calls look: {"at": 0}' in request.messages[0]["content"][0]["text"]


def test_its_tokens_count_for_the_run(agent_of, chat):
    agent, _ = agent_of([full(), turn("In short.", usage=(100, 20)), turn("Answer.", usage=(7, 3))], chat(20))

    result = agent("Go on.")

    assert result.metrics.accumulated_usage["inputTokens"] == 107


def test_too_few_messages_let_the_error_go_to_the_caller(agent_of, chat):
    before = chat(4)
    agent, model = agent_of([full()], before)

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("Go on.")

    assert model.calls == 1
    assert any("too few messages" in note and "about" in note for note in caught.value.__notes__)
    assert agent.messages == before


def test_a_turn_that_never_fits_does_no_harm(agent_of, chat):
    before = chat(60)

    def script(request):
        return "In short." if request.purpose == "summarize" else ContextWindowOverflowException("never")

    agent, model = agent_of(script, before)

    with pytest.raises(ContextWindowOverflowException):
        agent("Go on.")

    assert agent.messages[:60] == before
    assert len(summaries(model)) <= 4


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("broken"), ModelThrottledException("slow"), turn(), "  ", "long " * 5_000, turn(use("look"))],
    ids=["fails", "throttled", "nothing", "blank", "longer", "only a tool use"],
)
def test_a_bad_summary_after_an_overflow_leaves_the_history_and_the_error(agent_of, chat, answer):
    before = chat(20)
    agent, _ = agent_of([full(), answer], before)

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("Go on.")

    assert agent.messages[:20] == before
    assert any(note.startswith("summarize: ") for note in caught.value.__notes__)


def test_a_message_that_alone_exceeds_the_window_is_told_with_its_size(agent_of):
    agent, _ = agent_of([full()], window=1_000)

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("x" * 40_000)

    (note,) = caught.value.__notes__
    assert "number 0, of the user, with about 10000 tokens" in note
    assert "window 1000" in note


# -- before it -----------------------------------------------------------------------------------------------------


def test_the_threshold_makes_a_summary_before_the_call(agent_of, chat):
    agent, model = agent_of(["In short.", "Answer."], chat(20), window=2_000, proactive_compression=AT_HALF)

    agent("Go on.")

    assert [request.purpose for request in model.requests] == ["summarize", "turn"]


def test_below_the_threshold_nothing_is_asked(agent_of, chat):
    agent, model = agent_of(["Answer."], chat(20), window=200_000, proactive_compression=True)

    agent("Go on.")

    assert model.calls == 1


@pytest.mark.parametrize(
    "answer", [RuntimeError("broken"), turn(), "long " * 5_000], ids=["fails", "nothing", "longer"]
)
def test_a_bad_summary_before_the_call_changes_nothing(agent_of, chat, answer):
    before = chat(20)
    agent, _ = agent_of([answer, "Answer."], before, window=2_000, proactive_compression=AT_HALF)

    result = agent("Go on.")

    assert str(result) == "Answer.\n"
    assert agent.messages[:20] == before


def test_one_that_failed_is_not_tried_again_at_each_turn(agent_of, chat):
    def script(request):
        if request.purpose == "summarize":
            return RuntimeError("broken")

        return turn(use("look")) if len(request.messages) < 31 else "Done."

    agent, model = agent_of(script, chat(20), window=2_000, proactive_compression=AT_HALF)

    agent("Go on.")

    assert len(summaries(model)) <= 2
    assert model.calls > 6


@pytest.mark.parametrize("window", [0, 1])
def test_a_window_of_almost_nothing_ends_all_the_same(agent_of, chat, window):
    def script(request):
        return "s" if request.purpose == "summarize" else "Answer."

    agent, _ = agent_of(script, chat(20), window=window, proactive_compression=True)

    assert str(agent("Go on.")) == "Answer.\n"
    assert_valid_history(agent.messages)


async def test_a_cancel_while_it_is_written_ends_the_run_and_leaves_the_history(agent_of, chat):
    before = chat(20)
    release = threading.Event()
    agent, model = agent_of([turn(stall=release), "Answer."], before, window=2_000, proactive_compression=AT_HALF)
    running = asyncio.create_task(agent.invoke_async("Go on."))
    await model.wait_stalled()

    agent.cancel()
    result = await running
    release.set()

    assert result.stop_reason == "cancelled"
    assert agent.messages[:20] == before


async def test_a_cancel_while_it_is_written_after_an_overflow_is_a_cancelled_result(agent_of, chat):
    before, release = chat(20), threading.Event()
    agent, model = agent_of([full(), turn(stall=release), "Answer."], before)
    running = asyncio.create_task(agent.invoke_async("Go on."))
    await model.wait_stalled()

    agent.cancel()
    result = await running
    release.set()

    assert result.stop_reason == "cancelled"
    assert agent.messages[:20] == before


def test_one_that_failed_once_is_made_at_the_threshold_again_after_one_that_did_not(agent_of, chat):
    purposes = []

    def script(request):
        purposes.append(request.purpose)
        if request.purpose == "summarize":
            return RuntimeError("broken") if purposes.count("summarize") == 1 else "In short."

        if estimate_tokens(request.messages) > 2_000:
            purposes.append("full")
            return full()

        return turn(use("look"), usage=None) if purposes.count("turn") < 60 else "Done."

    agent, _ = agent_of(
        script,
        chat(37),
        window=2_000,
        tool_answer="seen " * 40,
        proactive_compression={"compression_threshold": 0.95},
    )

    agent("Go on.")

    assert purposes[0] == "summarize"
    assert purposes.count("full") == 1
    assert purposes.count("summarize") > 3


# -- many of them --------------------------------------------------------------------------------------------------


def test_a_long_run_keeps_its_task_and_folds_each_summary_into_the_next(agent_of):
    turns = 0

    def script(request):
        nonlocal turns
        if request.purpose == "summarize":
            return f"Summary after {turns}."

        turns += 1
        assert any("THE TASK" in block.get("text", "") for block in request.messages[0]["content"])
        return turn(use("look"), usage=None) if turns < 80 else "Done."

    agent, model = agent_of(
        script, tool_answer="result " * 150, window=4_000, proactive_compression={"compression_threshold": 0.85}
    )

    assert agent("THE TASK").stop_reason == "end_turn"
    assert_valid_history(agent.messages)
    made = summaries(model)
    assert len(made) > 5
    assert "Summary after" in made[1].messages[0]["content"][0]["text"]
    assert sum("Summary after" in block.get("text", "") for m in agent.messages for block in m["content"]) == 1


def test_pins_stay_through_every_summary(agent_of, chat):
    messages = chat(40)
    messages[6] = {**messages[6], "metadata": {"custom": {"pinned": True}}}
    agent, _ = agent_of([full(), "One.", full(), "Two.", "Answer."], messages)

    agent("Go on.")

    assert any(messages[6]["content"][0] == block for message in agent.messages for block in message["content"])


def test_the_log_gets_the_summary_alone(chat):
    log = []

    class Recorder:
        name = "recorder"

        @hookimpl
        async def write_records(self, records):
            log.extend(record for record in records if record.kind == "history_spliced")

    agent = Agent(
        model=ScriptedModel([full(), "In short.", "Answer."]),
        messages=chat(200),
        callback_handler=None,
        conversation_manager=SummarizingConversationManager(),
        plugins=[Recorder()],
    )

    agent("Go on.")

    (splice,) = log
    assert splice.data["plugin"] == "summarize"
    assert splice.data["reason"] == "the request did not fit, summary 1"
    assert splice.data["gone"] == 61
    assert splice.data["messages"] == [agent.messages[0]]


# -- who writes it -------------------------------------------------------------------------------------------------


def test_an_agent_may_write_it_and_keeps_its_own_conversation(agent_of, chat):
    writer = Agent(model=ScriptedModel(["Written."]), callback_handler=None, system_prompt="You write.")
    agent, model = agent_of([full(), "Answer."], chat(20), summarization_agent=writer)

    agent("Go on.")

    assert first_text(agent).endswith("Written.")
    assert writer.messages == []
    assert summaries(model) == []


def test_the_window_of_the_one_who_writes_it_is_what_the_request_has_to_fit(agent_of, chat):
    def small(request):
        sizes = [len(block["text"]) for message in request.messages for block in message["content"]]
        return full() if sum(sizes) > 3 * 2_500 else "Written."

    model = ScriptedModel(small, context_window=2_500)
    writer = Agent(model=model, callback_handler=None)
    agent, _ = agent_of([full(), "Answer."], chat(2_000), window=200_000, summarization_agent=writer)

    agent("Go on.")

    assert first_text(agent).endswith("Written.")
    assert model.calls == 1


@pytest.mark.parametrize("stop", ["guardrail_intervened", "content_filtered", "limit_turns"])
def test_what_an_agent_says_when_it_refuses_or_is_stopped_is_no_summary(agent_of, chat, stop):
    before = chat(20)
    writer = Agent(model=ScriptedModel([turn("I must not.", stop=stop)]), callback_handler=None)
    agent, _ = agent_of([full(), "Answer."], before, summarization_agent=writer)

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("Go on.")

    assert agent.messages == before
    assert any(stop in note for note in caught.value.__notes__)


def test_an_agent_that_is_cancelled_alone_has_failed(agent_of, chat):
    class Cancelled:
        name = "cancelled"

        async def invoke_async(self, prompt):
            return AgentResult("cancelled", {"role": "assistant", "content": []}, EventLoopMetrics(), {})

    before = chat(20)
    agent, _ = agent_of([full(), "Answer."], before, summarization_agent=Cancelled())

    with pytest.raises(ContextWindowOverflowException) as caught:
        agent("Go on.")

    assert agent.messages == before
    assert any(note.startswith("summarize: ") for note in caught.value.__notes__)


def test_a_prompt_of_the_callers_takes_the_place_of_the_usual_one(agent_of, chat):
    agent, model = agent_of([full(), "In short.", "Answer."], chat(20), summarization_system_prompt="Be brief.")

    agent("Go on.")

    assert summaries(model)[0].system == ({"text": "Be brief."},)


def test_both_are_refused():
    with pytest.raises(ValueError, match="both given"):
        SummarizingConversationManager(summarization_agent=Agent(), summarization_system_prompt="x")


# -- by hand -------------------------------------------------------------------------------------------------------


def test_it_can_be_asked_between_runs(agent_of, chat):
    agent, _ = agent_of(["In short."], chat(20))
    manager = SummarizingConversationManager()

    manager.apply_management(agent)
    manager.reduce_context(agent)

    assert first_text(agent).endswith("In short.")
    assert agent.plugin_state("summarize").get("removed_message_count") == 6


async def test_it_can_be_awaited_between_runs(agent_of, chat):
    agent, _ = agent_of(["In short."], chat(20))

    await SummarizingConversationManager().reduce_context(agent)

    assert first_text(agent).endswith("In short.")


def test_by_hand_too_few_messages_are_an_overflow_of_their_own(agent_of, chat):
    agent, _ = agent_of([], chat(4))

    with pytest.raises(ContextWindowOverflowException, match="too few messages") as caught:
        SummarizingConversationManager().reduce_context(agent)

    assert isinstance(caught.value.__cause__, SummaryError)


# -- parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "held"), [(0.0, 0.1), (0.05, 0.1), (0.3, 0.3), (0.9, 0.8), (7, 0.8)])
def test_the_ratio_is_held_within_its_bounds(given, held):
    assert SummarizingConversationManager(summary_ratio=given).summary_ratio == held


@pytest.mark.parametrize(
    "options",
    [
        {"summary_ratio": float("nan")},
        {"summary_ratio": "half"},
        {"preserve_recent_messages": -1},
        {"preserve_recent_messages": 1.5},
        {"pin_first": -1},
        {"proactive_compression": {"compression_threshold": 0}},
        {"proactive_compression": {"compression_threshold": 1.01}},
        {"summarization_agent": "me"},
    ],
)
def test_other_values_are_refused(options):
    with pytest.raises(ValueError, match="SummarizingConversationManager"):
        SummarizingConversationManager(**options)
