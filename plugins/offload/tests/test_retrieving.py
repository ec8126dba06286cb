"""The retrieval tool: what its arguments mean, and what it answers to those that mean nothing."""

from __future__ import annotations

import pytest

from ropewalk.kits.context.searching import PatternError
from ropewalk_offload.retrieving import MOST_CHARS, ArgumentError, RetrievalTool, excerpt

TEXT = "\n".join(f"line {n}" for n in range(1, 101))
IMAGE = {"image": {"format": "png", "source": {"bytes": b"123"}}}
PDF = {"document": {"format": "pdf", "name": "d", "source": {"bytes": b"x" * 1_000}}}
HUGE = {"document": {"format": "pdf", "name": "d", "source": {"bytes": b"x" * 1_000_000}}}


def read(content, **given):
    content = [{"text": content}] if isinstance(content, str) else content
    return excerpt(content, given)


def text(content, **given):
    (piece,) = read(content, **given)
    assert len(piece["text"]) <= MOST_CHARS
    return piece["text"]


def test_without_arguments_all_of_it_is_read():
    assert text(TEXT) == TEXT
    assert text("") == ""
    assert text("x" * MOST_CHARS) == "x" * MOST_CHARS


def test_a_giant_blob_is_read_in_pieces_that_make_it():
    blob = "".join(f"{n:06d}" for n in range(30_000))
    offset, parts = 0, []
    for _ in range(10):
        head, body = text(blob, offset=offset).split("\n", 1)
        parts.append(body)
        if "read on with offset=" not in head:
            break

        offset = int(head.rsplit("=", 1)[1].rstrip("]"))

    assert "".join(parts) == blob
    assert len(parts) == 5
    assert text(blob).split("\n")[0] == "[characters 0 to 39,700 of 180,000; read on with offset=39700]"
    assert text(blob, offset=179_999) == "[characters 179,999 to 180,000 of 180,000]\n9"


@pytest.mark.parametrize(
    "span", [{"start": 9, "end": 10}, [9, 10], "9-10", "9:10", "9 to 10", {"start": "9", "end": 10.0}], ids=repr
)
def test_a_range_of_lines_is_read_as_models_write_it(span):
    assert text(TEXT, line_range=span) == "9: line 9\n10: line 10"


def test_a_range_may_lack_an_end_and_reach_beyond_the_text():
    assert text(TEXT, line_range={"start": 99}) == "99: line 99\n100: line 100"
    assert text(TEXT, line_range={"end": 1}) == "1: line 1"
    assert text(TEXT, line_range={"start": 100, "end": 900}) == "100: line 100"
    assert text(TEXT, line_range=3) == "3: line 3"


def test_a_range_of_long_lines_is_cut_and_says_so():
    shown = text("x" * 50_000 + "\n" + "y", line_range=[1, 2])
    assert shown.endswith("ask for fewer, or read on with offset]")


def test_a_pattern_is_looked_for_in_the_range():
    assert text(TEXT, pattern="line 5", context_lines=0) == (
        "5: line 5\n--\n" + "\n".join(f"{n}: line {n}" for n in range(50, 60))
    )
    assert text(TEXT, pattern="line 5", line_range=[50, 51], context_lines=0) == "50: line 50\n51: line 51"
    assert text(TEXT, pattern="line 50$", context_lines="1") == "49: line 49\n50: line 50\n51: line 51"
    assert text(TEXT, pattern="line 50$").count("\n") == 10


def test_more_matches_than_can_be_shown_are_said():
    assert text("match " + "x" * 500 + "\n" + ("match " + "x" * 500 + "\n") * 200, pattern="match").endswith(
        "[... there is more: use a narrower pattern, a line_range or fewer context_lines]"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"line_range": {"start": 0}}, 'give {"start": 1'),
        ({"line_range": {"start": 5, "end": 4}}, "the text has 100 lines"),
        ({"line_range": {"start": 101}}, "the text has 100 lines"),
        ({"line_range": [1, 2, 3]}, "line_range is"),
        ({"line_range": "all"}, "line_range is 'all'"),
        ({"line_range": {"start": None, "end": "x"}}, "line_range is 'x'"),
        ({"pattern": "zzz"}, "no line matches 'zzz'; there are 100 lines"),
        ({"pattern": "x", "context_lines": -1}, "context_lines is -1"),
        ({"pattern": "x", "context_lines": "some"}, "context_lines is 'some'"),
        ({"pattern": "x", "context_lines": True}, "context_lines is True"),
        ({"offset": 9_999}, "offset is 9,999: the text has 791 characters"),
        ({"offset": -1}, "offset is -1"),
        ({"offset": 1.5}, "offset is 1.5"),
        ({"piece": 0}, "piece is 0: the result has 1"),
        ({"piece": 2}, "piece is 2: the result has 1"),
        ({"piece": "first"}, "piece is 'first'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_do_not_fit_are_told(given, said):
    with pytest.raises(ArgumentError) as caught:
        read(TEXT, **given)

    assert said in str(caught.value)


def test_what_cannot_be_found_in_long_lines_is_told():
    blob = "start" + "x" * 3_000 + "end"
    with pytest.raises(ArgumentError, match="only matches of up to 400 characters are found for this pattern"):
        read(blob, pattern="star.+x.*end")

    assert "start" in text(blob, pattern="star.+")


def test_a_pattern_that_may_take_for_ever_is_told():
    with pytest.raises(PatternError):
        read(TEXT, pattern="(a+)+$")


def test_images_and_documents_come_as_they_were_as_far_as_there_is_room():
    assert read([IMAGE]) == [IMAGE]
    assert read([{"text": "two"}, IMAGE, PDF], piece=3) == [PDF]
    first, *media = read([{"text": "two"}, IMAGE, PDF])
    assert media == [IMAGE, PDF]
    assert first["text"] == "two\n[piece 2: image, png, 3 bytes]\n[piece 3: document, d, pdf, 1,000 bytes]"
    assert len(read([IMAGE] * 20)) == 1 + 6
    assert read([IMAGE, HUGE])[1:] == [IMAGE]
    assert read([{"text": "t"}, IMAGE], line_range=[1, 2]) == [{"text": "1: t\n2: [piece 2: image, png, 3 bytes]"}]
    with pytest.raises(ArgumentError, match="has about 50,000 tokens and cannot be shown"):
        read([HUGE])


def test_a_document_that_is_text_reads_as_text():
    csv = {"document": {"format": "csv", "name": "t", "source": {"bytes": b"a\nb\xff\n"}}}
    assert text([csv]) == "[piece 1: document, t, csv, 5 bytes]\na\nb\ufffd\n"
    assert text([csv], pattern="^b", context_lines=0) == "3: b\ufffd"


@pytest.mark.parametrize("given", [None, 5, "", "../../etc/passwd", "off_12", "OFF_" + "0" * 20, {"a": 1}], ids=repr)
async def test_what_is_no_reference_is_an_error_result(make_agent, given):
    from ropewalk_offload import ContextOffloader

    class Untouched:
        async def read(self, key):
            raise AssertionError(key)

        write = delete = list = read

    agent = make_agent([], ContextOffloader(Untouched()))
    answer = agent.tool.retrieve_offloaded_content(reference=given)
    assert answer["status"] == "error"
    assert "is no reference: copy it from the preview" in answer["content"][0]["text"]


async def test_what_is_stored_and_no_result_is_an_error_result(make_agent):
    from ropewalk_offload import ContextOffloader, MemoryStorage

    storage = MemoryStorage()
    for number, data in enumerate([b"", b"[]", b"{}", b'{"content": 1}', b'{"content": [1]}', b"\xff"]):
        reference = f"off_{number:020x}"
        await storage.write(reference, data)
        answer = make_agent([], ContextOffloader(storage)).tool.retrieve_offloaded_content(reference=reference)
        assert answer["status"] == "error"
        assert "no tool result" in answer["content"][0]["text"]


def test_the_tool_is_pure_and_its_schema_names_all_it_understands():
    tool = RetrievalTool(None)
    assert tool.effect == "pure"
    assert tool.tool_name == tool.tool_spec["name"] == "retrieve_offloaded_content"
    assert sorted(tool.tool_spec["inputSchema"]["json"]["properties"]) == [
        "context_lines",
        "line_range",
        "offset",
        "pattern",
        "piece",
        "reference",
    ]
