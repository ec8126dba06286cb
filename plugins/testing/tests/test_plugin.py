"""Model strings that need no model."""

from __future__ import annotations

import json

import pytest

from ropewalk.errors import UnknownModelError
from ropewalk.model import ModelRequest
from ropewalk_testing import ScriptError, TestingPlugin


def model(spec):
    return TestingPlugin().provide_model(spec, None)


async def said(made, *texts):
    asked = ModelRequest([{"role": "user", "content": [{"text": each}]} for each in texts])
    deltas = [event["contentBlockDelta"]["delta"] async for event in made.stream(asked) if "contentBlockDelta" in event]
    return "".join(delta.get("text", "") for delta in deltas)


@pytest.mark.parametrize("spec", [None, "bedrock:x", "testing", "anthropic.claude"])
def test_other_model_strings_are_left_alone(spec):
    assert model(spec) is None


async def test_echo_answers_with_the_last_text_of_the_user():
    assert await said(model("testing:echo"), "first", "last") == "last"
    assert await said(model("testing:echo")) == ""


async def test_silent_says_nothing_until_it_is_released():
    made = model("testing:silent")
    made.release()

    assert await said(made, "hi") == ""
    assert made.stalled.is_set()


async def test_a_script_can_be_a_json_file(tmp_path):
    script = tmp_path / "script.json"
    turns = ["hello", [{"text": "a"}, {"text": "b"}], {"turn": "cut", "cut": True, "deltas": 3, "usage": [1, 2]}]
    script.write_text(json.dumps(turns), encoding="utf-8")

    made = model(f"testing:{script}")

    assert [await said(made) for _ in turns] == ["hello", "ab", "cut"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownModelError, match=r"'testing:nope'.*testing:echo, testing:silent and testing:FILE.json"):
        model("testing:nope")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file.*give a JSON file"),
        ("{not json", "give a JSON file that holds a list of turns"),
        ("{}", "holds a dict: make it a list of turns"),
        ('[{"turn": "a", "colour": 1}]', "turn 0: unknown option 'colour'"),
    ],
)
def test_a_script_file_that_is_none_is_refused(tmp_path, content, message):
    script = tmp_path / "script.json"
    if content is not None:
        script.write_text(content, encoding="utf-8")

    with pytest.raises(ScriptError, match=message):
        model(f"testing:{script}")
