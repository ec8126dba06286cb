"""Whatever the history, the window and the model: a valid history, pins and the newest turn kept, or a typed error."""

from __future__ import annotations

import os

from drawn_histories import histories, look
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropewalk import (
    Agent,
    ContextWindowOverflowException,
    NullConversationManager,
    SlidingWindowConversationManager,
)
from ropewalk.kits.context import closed, newest_turn, pinned_places
from ropewalk.kits.messages.estimate import estimate_tokens, tokens_around
from ropewalk.kits.sessions import SessionManager
from ropewalk_testing import MemoryLogStore, ScriptedModel, assert_valid_history, turn, use

EXAMPLES = int(os.environ.get("ROPEWALK_EXAMPLES", "100"))


SIZES = st.sampled_from([1, 50, 399, 450, 5_000, 60_000])


class Plain:
    """A manager of the user's own: drops from the front, without a thought."""

    def apply_management(self, agent):
        del agent.messages[:-7]

    def reduce_context(self, agent, e=None):
        if len(agent.messages) < 2:
            raise e or RuntimeError("nothing left")

        del agent.messages[0]


@st.composite
def windows(draw):
    return SlidingWindowConversationManager(
        draw(st.integers(0, 12)),
        draw(st.booleans()),
        per_turn=draw(st.sampled_from([False, True, 2, 3])),
        proactive_compression=draw(st.sampled_from([None, True, {"compression_threshold": 0.4}])),
    )


def tokens_of(request):
    return tokens_around(request.system, request.tool_specs) + estimate_tokens(request.messages)


class Model(ScriptedModel):
    """Takes no request above its capacity; asks for a few tools and answers."""

    def __init__(self, capacity, sizes, known):
        super().__init__(self.answer, context_window=capacity if known else None)
        self.capacity = capacity
        self.sizes = list(sizes)
        self.answered = []

    def answer(self, request):
        tokens = tokens_of(request)
        if tokens > self.capacity:
            return ContextWindowOverflowException(f"{tokens} tokens are more than {self.capacity}")

        self.answered.append(request)
        said = use("look", {"size": self.sizes.pop(0)}) if self.sizes else "done"
        return turn(said, usage=(tokens, 10))


def contents(messages, places):
    return [messages[place]["content"] for place in sorted(places)]


def built(messages, manager, model, store):
    return Agent(
        model=model,
        messages=messages,
        tools=[look],
        callback_handler=None,
        conversation_manager=manager,
        session_manager=SessionManager("s", store),
        plugins=["-retry"],
    )


def run(agent):
    try:
        return str(agent("the prompt"))
    except ContextWindowOverflowException:
        return None


MODELS = st.builds(Model, st.integers(20, 40_000), st.lists(SIZES, max_size=6), st.booleans())


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(histories(SIZES), windows(), MODELS)
def test_a_window_keeps_what_has_to_stay_and_meets_its_size_or_gives_a_typed_error(messages, manager, model):
    store = MemoryLogStore()
    agent = built(messages, manager, model, store)
    pinned = contents(messages, pinned_places(messages))
    before = list(agent.messages)

    answer = run(agent)

    assert model.calls <= len(model.answered) + 4 * (len(model.answered) + 1)
    for request in model.answered:
        assert_valid_history(request.messages)
        assert any({"text": "the prompt"} in message["content"] for message in request.messages)
        assert [m["content"] for m in request.messages if m["content"] in pinned] == pinned

    kept = agent.messages
    assert [m["content"] for m in kept if m["content"] in pinned] == pinned
    assert_valid_history(list(agent.history.view()))
    if answer is not None:
        assert answer == "done\n"
        places = pinned_places(kept)
        floor = closed(kept, places) if manager.window_size == 0 else closed(kept, {*places, *newest_turn(kept)})
        assert len(kept) <= max(manager.window_size, len(floor))
    elif not model.answered and manager.compression_threshold is None and not manager.per_turn:
        assert kept[: len(before)] == before

    again = built([], manager, model, store.reopened())
    assert again.messages == kept
    assert again.history.ids == agent.history.ids


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(histories(SIZES), st.sampled_from([NullConversationManager(), Plain()]), MODELS)
def test_a_manager_of_the_users_own_leaves_a_valid_history(messages, manager, model):
    store = MemoryLogStore()
    agent = built(messages, manager, model, store)

    answer = run(agent)

    assert answer in ("done\n", None)
    for request in model.answered:
        assert_valid_history(request.messages)

    assert_valid_history(list(agent.history.view()))
    again = built([], manager, model, store.reopened())
    assert again.messages == agent.messages
