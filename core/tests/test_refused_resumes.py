"""With which agents a paused run goes on: the same history, tools and plugins, the latter in a version that fits."""

from __future__ import annotations

import pytest

from ropewalk.kits.suspension import CheckpointException, ResumeError, Suspension
from ropewalk.kits.suspension.answers import resumes
from ropewalk.kits.suspension.changes import refuse_changes


def pause(**fields):
    given = {"kind": "interrupt", "run": "r", "position": "tools", "digest": "d", "length": 2, "tools": ("t",)}
    return Suspension(**{**given, **fields})


@pytest.mark.parametrize(
    ("before", "now", "fits"),
    [
        ("1.4.2", "1.9", True),
        ("1.4.2", "2.4.2", False),
        ("10.1", "1.1", False),
        ("0.3.1", "0.3.9", True),
        ("0.3.1", "0.4.1", False),
        ("0.3.1", "1.3.1", False),
        ("", "", True),
    ],
)
def test_a_plugin_may_be_of_another_version_of_its_series(before, now, fits):
    paused = pause(plugins={"p": before})
    if fits:
        refuse_changes(paused, 2, "d", ["t"], {"p": now, "new": "1"})
        return

    with pytest.raises(ResumeError, match=f"the plugin 'p' is of version {now}, then {before}: install that one again"):
        refuse_changes(paused, 2, "d", ["t"], {"p": now})


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ((3, "d", ["t"], {"p": "1"}), "the history is not the one it was paused with"),
        ((2, "e", ["t"], {"p": "1"}), "the history is not the one it was paused with"),
        ((2, "d", ["other"], {"p": "1"}), "the agent has no tool 't' any more"),
        ((2, "d", ["t"], {}), "the plugin 'p' took part in it and is not active"),
    ],
)
@pytest.mark.parametrize(("kind", "error"), [("interrupt", ResumeError), ("checkpoint", CheckpointException)])
def test_what_differs_is_named(found, problem, kind, error):
    with pytest.raises(error, match=f"the run cannot go on: {problem}") as caught:
        refuse_changes(pause(kind=kind, plugins={"p": "1"}), *found)

    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("kind", "prompt", "meant"),
    [
        ("interrupt", [{"interruptResponse": {}}], True),
        ("interrupt", None, False),
        ("interrupt", "go", False),
        ("interrupt", {"checkpointResume": {}}, False),
        ("checkpoint", {"checkpointResume": {}}, True),
        ("checkpoint", None, True),
        ("checkpoint", "go", False),
        ("checkpoint", {"other": 1}, False),
        ("crash", None, True),
        ("crash", [{"text": "go"}], False),
    ],
)
def test_which_prompts_are_meant_to_go_on(kind, prompt, meant):
    assert resumes(prompt, pause(kind=kind)) is meant
