"""What was taken out of the context."""

from __future__ import annotations

from ropewalk import JSONState
from ropewalk_context_agentic import stash


def test_a_text_is_read_by_its_reference():
    state = JSONState()
    stash.keep(state, "a", "text")

    assert stash.read(state, "a") == "text"
    assert stash.read(state, "b") is None
    assert stash.references(state) == ["a"]


def test_the_oldest_goes_when_there_is_too_much():
    state = JSONState()
    for name in "abc":
        stash.keep(state, name, name * (stash.MOST_CHARS // 2))

    assert stash.references(state) == ["b", "c"]
    assert stash.read(state, "a") is None


def test_a_text_that_is_too_long_alone_is_cut():
    state = JSONState()
    stash.keep(state, "a", "x" * (stash.MOST_CHARS + 1))

    assert len(stash.read(state, "a")) == stash.MOST_CHARS
