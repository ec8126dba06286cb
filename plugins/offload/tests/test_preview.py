"""The text that stands in the place of a large result."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ropewalk_offload.preview import AROUND, preview, shortened

REFERENCE = "off_0123456789abcdef0123"


def test_a_preview_says_what_there_was_where_it_is_and_how_to_read_it():
    text = "\n".join(f"row {n}" for n in range(1, 2_001))
    lines = preview([{"text": text}], 4_500, 20, REFERENCE, "read_it").split("\n")
    assert lines[0] == "[Offloaded: 1 text, about 4,500 tokens, 16,892 characters in 2,000 lines]"
    assert lines[1:9] == [f"row {n}" for n in range(1, 9)]
    assert lines[9] == "[... 16,818 characters, lines 9 to 1,997, are left out ...]"
    assert lines[10:13] == ["row 1998", "row 1999", "row 2000"]
    assert lines[-1] == f"[Reference: {REFERENCE}; use read_it with it to read by pattern, line_range or offset]"
    assert preview([{"text": text}], 1, 20, REFERENCE, "").endswith(f"[Reference: {REFERENCE}]")


def test_one_blob_without_newlines_is_cut_in_characters():
    assert shortened("x" * 600 + "y" * 400, 100) == f"{'x' * 60}\n[... 900 characters, are left out ...]\n{'y' * 40}"


def test_a_preview_of_nothing_is_the_size_and_the_reference():
    text = preview([{"text": "x" * 100}, {"image": {}}, {"json": 1}, {"json": 2}], 99, 0, REFERENCE, "")
    assert text.startswith("[Offloaded: 1 text, 1 image, 2 JSON values, about 99 tokens, ")
    assert "x" not in text.replace("characters", "").replace("text", "")


@given(text=st.text(st.sampled_from("ab\n"), max_size=600), most=st.integers(0, 300))
def test_what_is_shown_and_what_is_left_out_make_the_text(text, most):
    shown = shortened(text, most)
    if len(text) <= most:
        assert shown == text
        return

    found = re.search(r"\[\.\.\. ([\d,]+) characters(?:, lines ([\d,]+) to ([\d,]+))?, are left out \.\.\.\]\n", shown)
    tail = shown[found.end() :]
    left_out = int(found[1].replace(",", ""))
    head = text[: len(text) - left_out - len(tail)]
    assert shown[: found.start()] in (head, f"{head}\n")
    assert text.endswith(tail)
    assert len(head) + len(tail) <= most
    if found[2]:
        touched = text[len(head) : len(head) + left_out]
        numbers = [n for n, line in enumerate(numbered(text), 1) if line & set(range(len(head), len(head) + left_out))]
        assert "\n" in touched
        assert (int(found[2]), int(found[3])) == (numbers[0], numbers[-1])


def numbered(text):
    """The places of the characters of each line, its newline included."""
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append(set(range(start, start + len(line) + 1)))
        start += len(line) + 1

    return lines


@given(
    pieces=st.lists(
        st.sampled_from([{"text": "a" * 900}, {"json": list(range(300))}, {"image": {"format": "p" * 999}}])
    ),
    tokens=st.integers(0, 500),
)
def test_a_preview_is_as_small_as_it_says(pieces, tokens):
    text = preview(pieces, 10**9, tokens, REFERENCE, "retrieve_offloaded_content")
    assert -(-len(text) // 4) <= tokens + AROUND
