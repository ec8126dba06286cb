"""core/README.md lists every event that consumers see."""

from __future__ import annotations

import re
from pathlib import Path

from ropewalk.kits import events
from ropewalk.kits.events import Event, RawDelta

PAGE = Path(__file__).resolve().parents[2] / "core" / "README.md"
RAW = {"contentBlockDelta": {"delta": {}}}
EXAMPLES = [
    events.RawDelta(RAW),
    events.TextDelta(RAW, "text"),
    events.TextEnded(RAW),
    events.ToolInputDelta(RAW, {}, {}, []),
    events.ReasoningDelta(RAW, {"reasoningContent": {"text": "hm"}}),
    events.CitationDelta(RAW, {"citation": {}}),
    events.ToolStreamed({}, 1),
    events.RunStarted("run"),
    events.CycleStarted(0),
    events.AttemptDiscarded(1, "throttled", 1.0),
    events.MessageAdded({}),
    events.ToolPaused({}, ()),
    events.ToolsStarting([]),
    events.RunFailed(ValueError()),
    events.StructuredOutputFilled(1),
    events.RunEnded(None),
]


def kinds(base=Event):
    """The classes of events that are really made: those without classes of their own below them."""
    below = base.__subclasses__()
    return {base} if not below else set().union(*(kinds(each) for each in below))


def listed():
    table = PAGE.read_text(encoding="utf-8").partition("## Events")[2].partition("\n## ")[0]
    return re.findall(r"`(\w+)`", " ".join(re.findall(r"(?m)^\| (`.*?) \|", table)))


def test_there_is_an_example_of_each_event():
    assert {type(each) for each in EXAMPLES} == kinds()


def test_each_event_has_a_key_of_the_table():
    assert [type(each) for each in EXAMPLES if not set(each.as_dict()) & set(listed())] == []


def test_each_key_of_the_table_is_one_of_an_event():
    assert set(listed()) <= {key for each in EXAMPLES for key in each.as_dict()}


def test_a_piece_comes_behind_the_providers_own_event():
    assert [sorted(each) for each in events.dicts_of(EXAMPLES[1])] == [["event"], ["data", "delta"]]
    assert isinstance(EXAMPLES[0], RawDelta)
    assert [sorted(each) for each in events.dicts_of(EXAMPLES[0])] == [["event"]]
