from __future__ import annotations

import json

from ropewalk import Record
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions.erasure import erased, redactions
from ropewalk.kits.suspension import Suspension

SECRET = "4711"


def user(*content):
    return {"role": "user", "content": list(content)}


def result(use, text):
    return {"toolUseId": use, "status": "success", "content": [{"text": text}]}


def record(number, kind, data, run="r", path=()):
    return Record(run, number, kind, data, 1.0, path)


REDACTION = record(9, "redacted", {"id": 4, "uses": ["T1"]})


def said(records):
    return json.dumps([each.to_dict() for each in records])


def test_only_the_records_that_redact_are_redactions():
    assert redactions([record(0, "run_ended", {}), REDACTION]) == [REDACTION]


def test_every_place_of_the_message_is_emptied_and_others_stay():
    message = user({"text": SECRET})
    other = user({"text": "other"})
    records = [
        record(0, "snapshot_loaded", {"messages": [message, other], "ids": [4, 5], "state": {}, "cells": {}}),
        record(1, "message_appended", {"id": 4, "message": message}),
        record(2, "message_replaced", {"id": 4, "message": message}),
        record(3, "history_spliced", {"at": 0, "gone": 0, "ids": [3, 4], "messages": [other, message]}),
        record(4, "tool_ended", {"id": "T1", "attempt": 1, "result": result("T1", SECRET)}),
        record(5, "tool_ended", {"id": "T2", "attempt": 1, "result": result("T2", "kept")}),
        record(6, "message_appended", {"id": 5, "message": other}),
    ]
    after = erased(records, REDACTION)

    assert SECRET not in said(after)
    assert said(after).count("other") == 3
    assert "kept" in said(after)
    assert [(each.run, each.number, each.kind) for each in after] == [(r.run, r.number, r.kind) for r in records]
    assert SECRET in said(records), "what was given is not changed"


def test_pauses_of_the_run_lose_its_input_and_its_results():
    def pause(run):
        return Suspension(
            kind="interrupt",
            run=run,
            position="input",
            input=[user({"text": SECRET})],
            finished={"T1": result("T1", SECRET), "T2": result("T2", "kept")},
        ).to_dict()

    snapshot = {"messages": [], "ids": [], "state": {}, "cells": {}, "pause": pause("r")}
    records = [
        record(0, "snapshot_loaded", snapshot),
        record(1, "run_suspended", pause("r")),
        record(2, "run_resumed", {"answers": {}}),
    ]
    after = erased(records, REDACTION)

    assert SECRET not in said(after)
    assert said(after).count("kept") == 2
    assert fold(LogState(), after).pause.finished["T2"] == result("T2", "kept")
    other = [record(0, "run_suspended", pause("another"), "another")]
    assert erased(other, REDACTION) == other


def test_records_of_other_paths_stay():
    inner = record(0, "message_appended", {"id": 4, "message": user({"text": "inner"})}, path=("T9",))
    assert erased([inner], REDACTION) == [inner]


def test_what_was_erased_is_still_a_legal_message():
    result = {"toolUseId": "T", "status": "success", "content": [{"text": "secret"}]}
    message = {"role": "user", "content": [{"toolResult": result}, {"text": "secret"}]}
    earlier = [Record("r", 0, "message_appended", {"id": 3, "message": message})]

    (record,) = erased(earlier, Record("r", 1, "redacted", {"id": 3, "uses": ["T"]}))

    content = record.data["message"]["content"]
    assert content == [{"toolResult": {**result, "content": [{"text": "[erased]"}]}}]
