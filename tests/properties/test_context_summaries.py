"""Whatever the history, the window and the summarizer: a valid history with pins and newest turn, or a typed error."""

from __future__ import annotations

import os

from drawn_histories import histories, look
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropewalk import Agent, ContextWindowOverflowException, SummarizingConversationManager
from ropewalk.kits.context import pinned_places
from ropewalk.kits.messages.estimate import estimate_tokens, tokens_around
from ropewalk.kits.sessions import SessionManager
from ropewalk_testing import MemoryLogStore, ScriptedModel, assert_valid_history, turn, use

EXAMPLES = int(os.environ.get("ROPEWALK_EXAMPLES", "100"))
SIZES = st.sampled_from([1, 50, 450, 2_500])
SUMMARIES = {"short": "In short.", "empty": "", "blank": " ", "long": "long " * 30_000, "fails": RuntimeError("broken")}


managers = st.builds(
    SummarizingConversationManager,
    st.floats(0, 1),
    st.integers(0, 12),
    pin_first=st.one_of(st.none(), st.integers(0, 3)),
    proactive_compression=st.sampled_from([None, True, {"compression_threshold": 0.4}]),
)


class Model(ScriptedModel):
    """Takes no request above its capacity, not even for a summary."""

    def __init__(self, capacity, sizes, summary, known, counts):
        super().__init__(self.answer, context_window=capacity if known else None)
        self.capacity, self.summary, self.counts = capacity, summary, counts
        self.sizes = list(sizes)
        self.summarized = 0

    def answer(self, request):
        tokens = tokens_around(request.system, request.tool_specs) + estimate_tokens(request.messages)
        if tokens > self.capacity:
            return ContextWindowOverflowException(f"{tokens} tokens are more than {self.capacity}")

        if request.purpose == "summarize":
            assert_valid_history(request.messages)
            assert request.tool_specs == ()
            self.summarized += 1
            return SUMMARIES[self.summary]

        assert_valid_history(request.messages)
        said = use("look", {"size": self.sizes.pop(0)}) if self.sizes else "done"
        return turn(said, usage=(tokens, 10) if self.counts else None)


models = st.builds(
    Model,
    st.integers(20, 6_000),
    st.lists(SIZES, max_size=6),
    st.sampled_from(sorted(SUMMARIES)),
    st.booleans(),
    st.booleans(),
)


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(histories(SIZES, SIZES), managers, models)
def test_a_summary_keeps_what_has_to_stay_or_there_is_a_typed_error(messages, manager, model):
    store = MemoryLogStore()

    def built(script):
        return Agent(
            model=script,
            messages=messages,
            tools=[look],
            callback_handler=None,
            conversation_manager=manager,
            session_manager=SessionManager("s", store),
            plugins=["-retry"],
        )

    agent = built(model)
    before = list(agent.messages)
    pinned = [block for place in pinned_places(before, manager.pin_first or 0) for block in before[place]["content"]]
    try:
        said = str(agent("the prompt"))
    except ContextWindowOverflowException:
        said = None

    after = [block for message in agent.messages for block in message["content"]]
    assert all(block in after for block in pinned)
    assert {"text": "the prompt"} in after or said is None
    assert_valid_history(agent.messages, open_tail=True) if before[:1] == [] or before[0]["role"] == "user" else None
    if said is not None:
        assert agent.messages[-1]["content"][-1] == {"text": "done"}

    if model.summary != "short" and before:
        assert agent.messages[: len(before) - 1] == before[: len(before) - 1]

    restored = built(ScriptedModel([]))
    if said is not None:
        assert list(restored.messages) == list(agent.messages)
