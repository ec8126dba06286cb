from __future__ import annotations

import pytest

from ropewalk import Record
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions.retention import Gathering, Retention, compacted


def runs(count):
    """Records of runs that begin at the seconds 0, 1, 2 ..."""
    records = []
    for number in range(count):
        run, message = f"r{number}", {"role": "user", "content": [{"text": str(number)}]}
        records += [
            Record(run, 0, "run_started", {}, float(number)),
            Record(run, 1, "message_appended", {"id": number, "message": message}, float(number)),
            Record(run, 2, "run_ended", {"stop_reason": "end_turn"}, float(number)),
        ]

    return records


@pytest.mark.parametrize(
    ("retention", "cut"),
    [
        (Retention(), 0),
        (Retention(keep_last=0), 12),
        (Retention(keep_last=1), 9),
        (Retention(keep_last=4), 0),
        (Retention(keep_last=9), 0),
        (Retention(max_age=2.0), 6),
        (Retention(max_age=0.5), 12),
        (Retention(max_age=99.0), 0),
        (Retention(keep_last=1, max_age=99.0), 9),
        (Retention(keep_last=3, max_age=2.0), 6),
        (Retention(keep_last=3, compact_to_latest=True), 12),
    ],
    ids=repr,
)
def test_what_is_folded(retention, cut):
    assert retention.cut(runs(4), now=4.0) == cut


@pytest.mark.parametrize(("broken_off", "cut"), [((), 9), ((2,), 6), ((1, 2), 3), ((1,), 9), ((0, 1, 2), 0), ((3,), 9)])
def test_a_run_that_broke_off_is_kept_with_the_one_that_closes_it(broken_off, cut):
    records = [each for each in runs(4) if each.kind != "run_ended" or each.time not in broken_off]
    shift = sum(1 for number in broken_off if 3 * number < cut)
    found = Retention(keep_last=1).cut(records, now=4.0)

    assert found == cut - shift
    compacted(records, found, 9.0)


@pytest.mark.parametrize("cut", [0, 1, 3, 6, 9, 12])
def test_a_folded_log_adds_up_to_the_same(cut):
    records = runs(4)
    whole, folded = fold(LogState(), records), compacted(records, cut, 9.0)
    state = fold(LogState(), folded)

    assert len(folded) == (13 - cut if cut > 1 else 12)
    assert (state.messages, state.ids, state.next_id) == (whole.messages, whole.ids, whole.next_id)


def test_a_run_that_is_under_way_is_not_folded():
    with pytest.raises(ValueError, match="in the middle of a run"):
        compacted(runs(2), 5, 9.0)


def test_a_sub_agent_that_is_under_way_is_not_folded():
    records = runs(2)
    paused = {"kind": "interrupt", "run": "r1", "position": "tools"}
    records[4:] = [
        Record("child", 0, "run_started", {}, 1.0, ("T1",)),
        Record("r1", 1, "run_suspended", paused, 1.0),
    ]
    with pytest.raises(ValueError, match="a sub-agent's run has not ended"):
        compacted(records, len(records), 9.0)


def test_folding_is_due_when_as_much_has_gathered_as_there_is():
    gathering = Gathering()
    assert gathering.add(3), "right after the log was opened"
    gathering.folded(runs(2))
    assert [gathering.add(2) for _ in range(3)] == [False, False, True]
    snapshot = Record("r", 0, "snapshot_loaded", {"messages": [{}] * 10}, 1.0)
    gathering.folded([snapshot])
    assert [gathering.add(5), gathering.add(5)] == [False, True]
