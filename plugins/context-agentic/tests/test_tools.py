"""Reading what was removed."""

from __future__ import annotations

import pytest

from ropewalk_context_agentic import stash
from ropewalk_context_agentic.tools import CELL, MOST_CHARS
from ropewalk_testing import use

TEXT = "\n".join(f"row {i}" for i in range(1, 41))


@pytest.fixture
def read(agent_of, results):
    def shown(text=TEXT, **arguments):
        agent, _ = agent_of([use("retrieve_context", {"reference": "ctx_1", **arguments}), "Done."])
        stash.keep(agent.plugin_state(CELL), "ctx_1", text)
        agent("Read.")
        return results(agent.messages)[0]

    return shown


def test_all_of_it(read):
    assert read() == TEXT


def test_a_range_of_lines(read):
    assert read(line_range={"start": 3, "end": 4}) == "3: row 3\n4: row 4"
    assert read(line_range={"start": 39}) == "39: row 39\n40: row 40"
    assert "no such lines: the text has 40" in read(line_range={"start": 90})


def test_a_pattern_with_lines_around_it(read):
    assert read(pattern="row 7$", context_lines=1) == "6: row 6\n7: row 7\n8: row 8"


def test_a_pattern_within_a_range(read):
    assert read(pattern="row .5", line_range={"start": 20, "end": 30}, context_lines=0) == "25: row 25"


def test_a_pattern_that_is_no_expression_is_a_text(read):
    assert read("call f(x\nother", pattern="f(x", context_lines=0) == "1: call f(x"


@pytest.mark.parametrize("arguments", [{"line_range": 5}, {"line_range": {"start": "x"}}, {"pattern": "nowhere"}])
def test_what_cannot_be_read_is_an_error(read, arguments):
    assert read(**arguments).startswith("Error: ")


def test_more_than_the_most_is_cut_and_says_so(read):
    shown = read("y" * (MOST_CHARS + 7))

    assert shown.endswith("[... 7 characters more: use pattern, line_range or offset]")


def test_a_text_in_one_giant_line_can_be_read_to_its_end(read):
    text = "x" * 100_000 + "NEEDLE" + "y" * 100_000

    assert "NEEDLE" in read(text, pattern="NEEDLE")
    assert "".join(read(text, offset=at)[:MOST_CHARS] for at in range(0, len(text), MOST_CHARS)).startswith(text)
    assert read(text, offset=len(text) - 3) == "yyy"


@pytest.mark.parametrize("offset", [-1, "x", 1.5, True, len(TEXT) + 1])
def test_an_offset_that_is_none_is_an_error(read, offset):
    assert read(offset=offset).startswith("Error: offset is")


def test_a_pattern_that_may_take_for_ever_is_refused(read):
    assert "may take for ever" in read("a" * 40 + "!", pattern="(a+)+$")
