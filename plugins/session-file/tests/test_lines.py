from __future__ import annotations

import json

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import LogKey, SessionException
from ropewalk_session_file.lines import body_of, commit, head, lines, scan

FIRST = head(LogKey("s", "a"), 7)


def written(*commits):
    """A file with these commits."""
    data = lines([(FIRST, 0)], 0)
    for records in commits:
        data += lines(commit(records), len(data))

    return data


def found(data, start=0):
    return [entry.record for entry in scan(data, start, "the file").entries]


def test_lines_read_as_they_were_written(notes):
    odd = Record("r", 5, "once", {"key": "\u2028 \x85 \n å \U0001f642 \ud83d", "value": [b"\x00\xff", {"$bytes": 1}]})
    data = written(notes(2), [odd])

    assert found(data)[:2] == notes(2)
    assert found(data)[2].data == {"key": "\u2028 \x85 \n å \U0001f642 \ufffd", "value": [b"\x00\xff", {"$bytes": 1}]}


def test_every_line_is_json_and_the_first_says_whose_log_it_is(notes):
    values = [json.loads(line) for line in written(notes(2)).splitlines()]

    assert values[0].items() >= {"log": 1, "generation": 7, "session": "s", "agent": "a"}.items()
    assert [value["left"] for value in values] == [0, 1, 0]
    assert values[1]["kind"] == "once"


def test_a_file_can_be_read_from_the_middle(notes):
    begin = written(notes(2))
    assert found(written(notes(2), notes(3, 2))[len(begin) :], len(begin)) == notes(3, 2)


def test_a_commit_without_its_last_line_did_not_happen(notes):
    begin, whole = written(notes(2)), written(notes(2), notes(3, 2))
    cut = whole[: whole.rindex(b"\n", 0, -1) + 1]
    result = scan(cut, 0, "the file")

    assert [entry.record for entry in result.entries] == notes(2)
    assert (result.end, result.size, result.damaged) == (len(begin), len(cut), True)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [lines[0], lines[1], lines[1], *lines[2:]],
        lambda lines: [lines[0], *lines[2:]],
    ],
    ids=["swapped", "doubled", "missing"],
)
def test_lines_that_are_not_where_they_were_written_are_seen(notes, change):
    changed = change(written(*([note] for note in notes(4))).splitlines(keepends=True))
    assert found(b"".join(changed)) in ([], notes(1))


def test_an_upper_case_checksum_is_a_change(notes):
    data = written(notes(1))
    crc = next(line for line in data.splitlines() if b'"kind"' in line)[8:16]
    if crc.upper() != crc:
        assert found(data.replace(crc, crc.upper())) == []


def test_fields_of_another_version_are_ignored_and_kept(notes):
    body = notes(1)[0].to_json()[:-1] + ',"later":{"a":1}}'
    result = scan(written() + lines([(body, 0)], len(written())), 0, "the file")

    assert [entry.record for entry in result.entries] == notes(1)
    assert body_of(result.entries[0]) == body


def test_a_record_of_a_newer_version_is_refused_and_the_file_is_named(notes):
    newer = notes(1)[0].to_json().replace('"v":1', '"v":2')
    with pytest.raises(SessionException, match=r"the file cannot be read: the record is of version 2.*upgrade"):
        scan(written() + lines([(newer, 0)], len(written())), 0, "the file")


def test_a_file_of_a_newer_format_is_refused():
    data = lines([(FIRST.replace('"log":1', '"log":9'), 0)], 0)
    with pytest.raises(SessionException, match="its format is 9"):
        scan(data, 0, "the file")


def test_a_line_that_is_right_and_no_record_is_refused():
    with pytest.raises(SessionException, match="no record of a run"):
        scan(written() + lines([('{"other":1}', 0)], len(written())), 0, "the file")
