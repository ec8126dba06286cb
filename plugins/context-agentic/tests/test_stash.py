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
    assert stash.read(state, "a").endswith("xxx\n[... the rest was not kept: of 400001 characters 400000 are]")


def test_a_reference_that_is_kept_again_stands_once():
    state = JSONState()
    for name in ("a", "b", "a"):
        stash.keep(state, name, name * (stash.MOST_CHARS // 2))

    assert stash.references(state) == ["b", "a"]
    stash.keep(state, "c", "c")
    assert stash.references(state) == ["a", "c"]
    assert stash.read(state, "a") == "a" * (stash.MOST_CHARS // 2)
