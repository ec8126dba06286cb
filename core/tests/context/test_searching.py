"""Patterns of models in texts of any size."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.kits.context import searching
from ropewalk.kits.context.searching import PatternError, found_in

LINES = [f"line {n}" for n in range(1, 21)]


def search(pattern, lines=LINES, context_lines=0, most=40_000, first=1):
    found = found_in(lines, pattern, context_lines, most, first)
    return found.text, found.complete


def test_lines_that_match_are_shown_with_their_numbers_and_surroundings():
    assert search("line 7") == ("7: line 7", True)
    assert search("line 7", context_lines=1)[0] == "6: line 6\n7: line 7\n8: line 8"
    assert search(r"line (3|5)$", context_lines=1)[0] == "2: line 2\n3: line 3\n4: line 4\n5: line 5\n6: line 6"
    assert search(r"^line [27]$", context_lines=1)[0].split("--\n") == [
        "1: line 1\n2: line 2\n3: line 3\n",
        "6: line 6\n7: line 7\n8: line 8",
    ]
    assert search(r"line 1$", context_lines=3, first=100)[0].startswith("100: line 1\n101: line 2")
    assert search("nowhere") == ("", True)
    assert search("x", lines=[]) == ("", True)


def test_what_is_no_regular_expression_is_searched_for_as_it_stands():
    assert search("f(x", lines=["f(x)", "g"])[0] == "1: f(x)"
    assert search("a[0", lines=["a[0] = 1"])[0] == "1: a[0] = 1"


def test_more_than_is_wanted_is_not_looked_for():
    text, complete = search("line", most=30)
    assert not complete
    assert text.count("\n") < 5


def test_in_a_very_long_line_the_surroundings_of_matches_are_shown():
    blob = "x" * 50_000 + "needle one" + "y" * 50_000 + "needle two" + "z" * 100 + "needle three" + "w" * 20_000
    text, complete = search(r"needle \w+", lines=[blob])
    shown = text.split("\n")
    assert complete
    assert len(shown) == 2  # the last two are one stretch
    assert shown[0].startswith("1: [characters 49,800 to ")
    assert "needle one" in shown[0]
    assert "needle two" in shown[1]
    assert "needle three" in shown[1]
    assert len(text) < 10_000
    assert search("q", lines=[blob]) == ("", True)
    assert "1: " + "x" * 400 + " [... " in search("here", lines=[blob, "here"], context_lines=1)[0]


@pytest.mark.parametrize(
    "pattern",
    [
        *[
            "(a+)+$",
            "(a*)*b",
            "((a+)b?)*c",
            "(a|a)*b",
            "(a|aa)+$",
            "(?:a+){2,}",
            "(a{1,9}){9}",
            "a*b*c*d*e",
            ".*.*.*.*",
        ],
        *["(a?){25}b", "a?" * 30 + "a" * 30, "(?:a|aa)" * 22 + "b", "(a?a?){9}b", "(?:ab?)+c", "a??" * 30 + "b"],
        *["(|a)+b", "(?x)(a+) +$", "(?x: (a+) + )$", "(?ix)b", r"(.*)(.*)\1\2", "(?P<n>.*).*(?P=n)(?P=n)"],
    ],
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern):
    with pytest.raises(PatternError, match="may take for ever"):
        search(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"line\s+\d+",
        r"(line)+ 7",
        r"[(*+|]?line 7",
        r"\(?line\)? [^)]7?",
        r"(error|line) \d",
        r"[]*+]?line",
        r"[^]*+]ine",
        r"(?i)LINE",
        r"\d+:?\d*",
        r"line 7{1}",
        r"(?:line)+? 7",
        r"(?P<word>line|row|column) (?:1|2|3|4|5|6|7|8|9)$",
        r"(?=line)l?i?n?e? 7?",
        r"l.*?7",
    ],
)
def test_a_usual_pattern_is_searched_for_as_it_is(pattern):
    expected = [f"{n}: {line}" for n, line in enumerate(LINES, 1) if re.search(pattern, line)]
    assert expected
    assert search(pattern)[0].replace("--\n", "").split("\n") == expected


@pytest.mark.parametrize("pattern", [".*.*x", "a*a*a*b", r"(\w+)\s+(\w+)", ".*a.*b"])
def test_a_pattern_is_never_searched_for_in_more_than_its_share_of_a_line(pattern, monkeypatch):
    monkeypatch.setattr(searching.time, "monotonic", lambda: 0.0)
    repetitions, _ = searching._shape(pattern)
    _, window = searching._compiled(pattern)
    assert window == searching.WINDOWS[repetitions]
    assert max(last - first for first, last in searching._pieces(30_000, window)) == window
    assert search(pattern, lines=["a" * 300]) == ("", True)


@pytest.mark.parametrize(
    ("pattern", "window"),
    [
        ("ab?c", 4_000),
        ("(a|b)?c", 4_000),
        ("a?" * 12, 976),
        ("a+b?", 1_414),
        (r"(a)\1b?", 1_414),
        ("a+b+(c|d|e|f)", 503),
    ],
)
def test_the_more_ways_a_pattern_can_be_taken_the_less_it_is_searched_in_at_once(pattern, window):
    assert searching._compiled(pattern)[1] == window


def test_a_search_that_takes_too_long_is_given_up(monkeypatch):
    clock = iter(range(0, 100, 1))
    monkeypatch.setattr(searching.time, "monotonic", lambda: next(clock))
    with pytest.raises(PatternError, match="takes too long"):
        search("line")


@given(length=st.integers(0, 900), window=st.sampled_from([2, 3, 10, 250]))
def test_the_pieces_of_a_line_cover_it_and_overlap_by_half(length, window):
    pieces = list(searching._pieces(length, window))
    assert all(0 <= first <= last <= first + window and last <= length for first, last in pieces)
    assert {at for first, last in pieces for at in range(first, last)} == set(range(length))
    for start in range(length - window // 2):
        assert any(first <= start and start + window // 2 <= last for first, last in pieces)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (r"^\s*\d+\s+x", False),
        (r"^y+ *\d+", True),
        (r"\d*\s*y+$", True),
        (r"y+ *\d*$", True),
        (r"\d+ *\d*$", False),
        (r"(\s)y+\s*9+\b", True),
    ],
)
def test_the_end_of_a_piece_is_not_the_end_of_a_line(pattern, matches):
    line = "y" * 100 + " 7 x" + " 999" * 100 + " x" * 100 + " " + "y" * 100 + " 99 " + "y" * 100
    assert bool(re.search(pattern, line)) is matches
    assert (search(pattern, lines=[line])[0] != "") is matches


@given(
    st.text(st.sampled_from("ab "), min_size=1, max_size=700),
    st.sampled_from([r"a+b+ +", r"^a*b+a*", r" +a+b+$", r"\ba+b+a+\b"]),
)
def test_in_pieces_short_matches_are_found_as_in_the_whole(line, pattern):
    expected = any(len(match.group()) < 125 for match in re.finditer(pattern, line))
    if expected:
        assert search(pattern, lines=[line])[0] != ""
    elif re.search(pattern, line) is None:
        assert search(pattern, lines=[line])[0] == ""


@given(lines=st.lists(st.text(st.sampled_from("abx"), max_size=4), max_size=30), reach=st.integers(0, 4))
def test_every_line_that_matches_is_shown_once_with_its_surroundings(lines, reach):
    text, complete = search("x", lines=lines, context_lines=reach)
    hits = {n for n, line in enumerate(lines, 1) if "x" in line}
    near = sorted({n for hit in hits for n in range(hit - reach, hit + reach + 1) if 1 <= n <= len(lines)})
    shown = [line for line in text.split("\n") if line not in ("--", "")]
    assert complete
    assert shown == [f"{n}: {lines[n - 1]}" for n in near]
