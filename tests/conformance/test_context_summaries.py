"""Summaries, presets and the model's own tools for its context (conformance 158 to 163)."""

from __future__ import annotations

import pytest

from ropewalk import ContextWindowOverflowException, SummarizingConversationManager, current_run, tool
from ropewalk.kits.context import ConversationManager
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use


def text_of(message):
    return " ".join(block.get("text", "") for block in message["content"])


def chat(count):
    return [
        {"role": "user" if i % 2 == 0 else "assistant", "content": [{"text": f"message {i} " + "word " * 40}]}
        for i in range(count)
    ]


def tool_turns(count):
    out = []
    for i in range(count):
        result = {"toolUseId": f"t{i}", "status": "success", "content": [{"text": f"result {i} " + "word " * 40}]}
        out += [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": f"t{i}", "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ]

    return out


def overflow():
    return ContextWindowOverflowException("the prompt is too long")


# -- 158 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recent", [2, 5, 10])
def test_158_the_summary_comes_first_and_the_recent_messages_stay(make_agent, recent):
    before = chat(21)
    manager = SummarizingConversationManager(summary_ratio=0.3, preserve_recent_messages=recent)
    agent, _ = make_agent([overflow(), "THE SUMMARY", "Answer."], messages=before, conversation_manager=manager)

    agent(None)

    assert agent.messages[0]["role"] == "user"
    assert "THE SUMMARY" in agent.messages[0]["content"][0]["text"]
    assert agent.messages[-recent - 1 : -1] == before[-recent:]
    assert len(agent.messages) < len(before)
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("recent", [3, 4, 5, 6])
def test_158_no_pair_is_split(make_agent, recent):
    before = [*chat(1), *tool_turns(8)]
    manager = SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=recent)
    agent, model = make_agent([overflow(), "THE SUMMARY", "Answer."], messages=before, conversation_manager=manager)

    agent(None)

    assert_valid_history(model.requests[-1].messages)
    assert_valid_history(agent.messages)
    kept = agent.messages[1:-1]
    assert kept == before[len(before) - len(kept) :]


# -- 159 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "asked"), [(1_200, ["summarize", "turn"]), (1_202, ["turn"])])
def test_159_compression_begins_at_the_threshold(make_agent, window, asked):
    def script(request):
        return "THE SUMMARY" if request.purpose == "summarize" else "Answer."

    roles = ["user", "assistant"] * 3
    six_hundred_tokens = [{"role": role, "content": [{"text": "word " * 80}]} for role in roles[:5]]
    six_hundred_tokens.append({"role": "assistant", "content": [{"text": "x" * 396}]})
    manager = SummarizingConversationManager(
        preserve_recent_messages=2, proactive_compression={"compression_threshold": 0.5}
    )
    model = ScriptedModel(script, context_window=window)
    agent, _ = make_agent(model, messages=six_hundred_tokens, conversation_manager=manager)

    agent("ask.")  # one token more

    assert [request.purpose for request in model.requests] == asked


def test_159_true_is_seven_tenths():
    assert SummarizingConversationManager(proactive_compression=True).compression_threshold == 0.7


# -- 160 -----------------------------------------------------------------------------------------------------------


@tool
def read_log() -> str:
    """Reads a long log."""
    return "\n".join(f"entry {i}: nothing happened" for i in range(1_000))


def test_160_auto_offloads_a_long_result_and_the_tool_brings_it_back(make_agent, tool_results, result_text):
    def find(request):
        stored = result_text(tool_results(request.messages)[-1])
        (reference,) = [word.strip(".,;:()[]\"'`") for word in stored.split() if is_reference(word)][:1]
        return use("retrieve_offloaded_content", {"reference": reference, "pattern": "entry 777:"})

    agent, _ = make_agent([use("read_log"), find, "Done."], tools=[read_log], context_manager="auto")

    agent("What is in the log?")

    stored, found = map(result_text, tool_results(agent.messages))
    assert len(stored) < 6_000
    assert "entry 0:" in stored
    assert "entry 777: nothing happened" in found
    assert_valid_history(agent.messages)


def is_reference(word):
    return "off_" in word


def test_160_auto_leaves_a_short_result_alone(make_agent, tool_results, result_text):
    @tool
    def short() -> str:
        """Says little."""
        return "little " * 100

    agent, _ = make_agent([use("short"), "Done."], tools=[short], context_manager="auto")

    agent("Go.")

    assert result_text(tool_results(agent.messages)[0]).strip() == ("little " * 100).strip()


def test_160_auto_summarizes_at_85_percent(make_agent):
    def script(request):
        return "THE SUMMARY" if request.purpose == "summarize" else "Answer."

    model = ScriptedModel(script, context_window=2_000)
    agent, _ = make_agent(model, messages=chat(40), context_manager="auto")

    agent("Go on.")

    assert [request.purpose for request in model.requests] == ["summarize", "turn"]


# -- 161 -----------------------------------------------------------------------------------------------------------


class Mine(ConversationManager):
    """A manager of the user's own."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def apply_management(self, agent, **kwargs):
        self.calls.append("apply")

    def reduce_context(self, agent, e=None, **kwargs):
        self.calls.append("reduce")
        del agent.messages[1:9]


class Duck:
    """The two methods without the base class."""

    def __init__(self):
        self.calls = []

    apply_management = Mine.apply_management
    reduce_context = Mine.reduce_context


@pytest.mark.parametrize("make", [Mine, Duck])
def test_161_with_auto_the_users_manager_is_used(make_agent, make):
    def script(request):
        assert request.purpose == "turn"
        return overflow() if len(request.messages) > 36 else "Answer."

    mine = make()
    model = ScriptedModel(script, context_window=2_000)
    agent, _ = make_agent(model, messages=chat(40), context_manager="auto", conversation_manager=mine)

    agent("Go on.")

    assert mine.calls == ["reduce", "apply"]


def test_161_with_auto_the_users_summarizer_takes_the_place_of_the_other(make_agent):
    mine = SummarizingConversationManager(summarization_system_prompt="MINE")
    model = ScriptedModel([overflow(), "THE SUMMARY", "Answer."])
    agent, _ = make_agent(model, messages=chat(40), context_manager="auto", conversation_manager=mine)

    agent("Go on.")

    assert model.requests[1].system == ({"text": "MINE"},)
    assert model.calls == 3


def test_161_with_auto_the_window_does_not_cut_as_well(make_agent):
    agent, _ = make_agent(["Answer."], messages=chat(60), context_manager="auto")

    agent("Go on.")

    assert len(agent.messages) == 62


# -- 162 -----------------------------------------------------------------------------------------------------------


def test_162_agentic_brings_its_tools_and_a_status_line_in_the_request_only(make_agent):
    model = ScriptedModel(["Answer."], context_window=8_000)
    agent, _ = make_agent(model, context_manager="agentic")

    agent("Hello.")

    assert {"summarize_context", "truncate_context", "pin_context", "retrieve_context"} <= set(agent.tool_names)
    assert text_of(model.requests[0].messages[-1]).startswith("Hello. <context-status><used>")
    assert [text_of(message) for message in agent.messages] == ["Hello.", "Answer."]


def test_162_the_models_summary_takes_effect_at_once_and_is_recorded(make_agent):
    ask = use("summarize_context", {"keep_recent": 4})
    model = ScriptedModel([ask, "THE SUMMARY", "Done."], context_window=8_000)
    agent, _ = make_agent(model, messages=chat(20), context_manager="agentic")

    agent("Make room.")

    assert "THE SUMMARY" in text_of(model.requests[-1].messages[0])
    assert_valid_history(agent.messages)


# -- 163 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["automatic", "AUTO", "", 1, False, {"auto": 1}])
def test_163_an_unknown_preset_is_a_value_error(make_agent, value):
    with pytest.raises(ValueError, match="context_manager"):
        make_agent([], context_manager=value)


def test_163_none_is_no_preset(make_agent):
    agent, _ = make_agent(["Answer."], context_manager=None)

    agent("Hello.")

    assert agent.tool_names == []


# -- what the tokens of a summary are ------------------------------------------------------------------------------


def test_the_tokens_of_summaries_are_told_apart(make_agent):
    script = [overflow(), turn("THE SUMMARY", usage=(100, 20)), turn("Answer.", usage=(7, 3))]
    agent, _ = make_agent(script, messages=chat(40), conversation_manager=SummarizingConversationManager())

    result = agent("Go on.", limits={"total_tokens": 50})

    assert result.metrics.accumulated_usage["totalTokens"] == 130


def test_a_summarizer_runs_in_the_run_that_it_is_for(make_agent):
    seen = []

    def script(request):
        seen.append((request.purpose, current_run().id))
        return "THE SUMMARY" if request.purpose == "summarize" else "Answer."

    model = ScriptedModel(script, context_window=2_000)
    manager = SummarizingConversationManager(proactive_compression=True)
    agent, _ = make_agent(model, messages=chat(40), conversation_manager=manager)

    agent("Go on.")

    assert [purpose for purpose, _ in seen] == ["summarize", "turn"]
    assert len({run for _, run in seen}) == 1
