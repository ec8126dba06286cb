"""Recording a model, playing the recording, and what happens when the run has changed."""

from __future__ import annotations

import asyncio
import copy
import json
from contextlib import aclosing

import pytest

from ropewalk.errors import ContextWindowOverflowException, ModelError, ModelThrottledException
from ropewalk.model import Model, ModelRequest
from ropewalk_testing import ScriptedModel, reasoning, turn, use
from ropewalk_testing.cassettes import Cassette, CassetteDrift, CassetteError, MissingCassetteError
from ropewalk_testing.cassettes.drift import ABSENT


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "run.json"


def test_it_is_a_model_in_both_modes(path):
    recording = Cassette(path, model=ScriptedModel([]))

    assert isinstance(recording, Model)
    assert recording.recording


@pytest.mark.parametrize(
    "said",
    [
        "hello",
        turn("naïve 🙂 \u2028", deltas=7),
        [reasoning("hm", "c2ln"), {"reasoningContent": {"redactedContent": b"\x00\xff"}}, use("add", {"a": 1}, id="T")],
        turn("half", cut=True),
        turn(
            raw=[{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "\ud83d"}}}, {"odd": {"$bytes": 1}}]
        ),
        turn("free", usage=None, stop="some_new_reason"),
    ],
)
async def test_what_is_played_is_what_was_streamed(path, ask, play, said):
    live = await play(Cassette(path, model=ScriptedModel([said])), ask())
    played = await play(Cassette(path), ask())

    assert played == live


async def test_requests_of_every_kind_are_found_again(path, play):
    request = ModelRequest(
        messages=[
            {
                "role": "user",
                "content": [{"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}, {"text": "\ud83d"}],
            }
        ],
        system=({"text": "Be brief."},),
        tool_specs=({"name": "now", "description": "Tells.", "inputSchema": {"json": {"$ref": "#/x"}}},),
        tool_choice={"any": {}},
        output_schema={"type": "object", "minimum": 0.5},
        invocation_state={"agent": object()},
        purpose="summary",
    )
    before = copy.copy(request)
    await play(Cassette(path, model=ScriptedModel(["ok"])), request)
    await play(Cassette(path), request)

    assert request == before
    assert "agent" not in path.read_text()


async def test_calls_are_played_in_order_and_equal_requests_get_their_own_answers(path, ask, play):
    recording = Cassette(path, model=ScriptedModel(["one", "two"]))
    live = [await play(recording, ask()) for _ in range(2)]
    playing = Cassette(path)

    assert [await play(playing, ask()) for _ in range(2)] == live
    playing.check_used_up()


async def test_calls_that_ran_side_by_side_may_come_in_another_order(path, ask, play):
    recording = Cassette(path, model=ScriptedModel(lambda request: request.messages[0]["content"][0]["text"]))
    await asyncio.gather(play(recording, ask("a")), play(recording, ask("b")))
    playing = Cassette(path)

    assert "'b'" in repr(await play(playing, ask("b")))
    assert "'a'" in repr(await play(playing, ask("a")))


async def test_what_the_caller_adds_for_itself_is_not_compared(path, ask, play):
    await play(Cassette(path, model=ScriptedModel(["ok"])), ask())
    request = ask(invocation_state={"day": 2})
    request.messages[0]["metadata"] = {"day": 2}

    await play(Cassette(path), request)


async def test_a_played_event_can_be_written_to(path, ask, play):
    recording = Cassette(path, model=ScriptedModel(["ok"] * 2))
    await play(recording, ask())
    await play(recording, ask())
    playing = Cassette(path)
    (await play(playing, ask()))[0]["messageStart"]["role"] = "spoilt"

    assert (await play(playing, ask()))[0] == {"messageStart": {"role": "assistant"}}


def test_a_model_may_be_made_when_it_is_needed(path):
    made = []

    def make():
        made.append(1)
        return ScriptedModel(["ok"], context_window=77)

    with pytest.raises(MissingCassetteError):
        Cassette(path, model=make, record=False)

    assert made == []
    assert Cassette(path, model=make).context_window == 77


async def test_a_recording_knows_the_model_it_was_made_from(path, ask, play):
    await play(Cassette(path, model=ScriptedModel(["ok"], context_window=77)), ask())
    playing = Cassette(path)

    assert (playing.model_id, playing.context_window, playing.supports_output_schema) == ("scripted", 77, False)
    assert not hasattr(playing, "count_tokens")


# -- errors --------------------------------------------------------------------------------------------------------


class CustomError(ModelError):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}", retry_after=3.5)
        self.provider, self.code = "acme", "E7"


async def fail(model, request):
    seen = []
    try:
        async for event in model.stream(request):
            seen.append(event)  # noqa: PERF401 - what was seen before the error counts
    except Exception as error:  # noqa: BLE001 - any is compared
        return seen, type(error), str(error), getattr(error, "retryable", None), getattr(error, "retry_after", None)

    return seen


@pytest.mark.parametrize(
    "error",
    [
        ModelThrottledException("slow down", retry_after=2.0),
        ModelError("odd", retryable=True),
        ContextWindowOverflowException("too long"),
        CustomError("some", "thing"),
        ConnectionResetError("gone"),
    ],
)
async def test_an_error_comes_again_where_it_came(path, ask, error):
    live = await fail(Cassette(path, model=ScriptedModel([turn("half", error=error)])), ask())
    played = await fail(Cassette(path), ask())

    assert live[1] is type(error)
    assert played == live


async def test_an_error_keeps_what_the_provider_said(path, ask, play):
    await fail(Cassette(path, model=ScriptedModel([CustomError("a", "b")])), ask())
    with pytest.raises(CustomError) as caught:
        await play(Cassette(path), ask())

    assert (caught.value.provider, caught.value.code) == ("acme", "E7")


@pytest.mark.parametrize("kind", ["antigravity:Error", "os:system", "builtins:print", "ropewalk.nowhere:X", "x", ""])
async def test_an_error_of_an_unknown_class_is_a_model_error_and_loads_nothing(path, ask, play, kind):
    await fail(Cassette(path, model=ScriptedModel([ModelError("odd")])), ask())
    data = json.loads(path.read_text())
    data["calls"][0]["error"]["type"] = kind
    path.write_text(json.dumps(data))

    with pytest.raises(ModelError, match="odd"):
        await play(Cassette(path), ask())


async def test_a_stream_that_was_closed_early_may_not_be_read_further(path, ask, play):
    async def first_three(model):
        async with aclosing(model.stream(ask())) as stream:
            return [await anext(stream) for _ in range(3)]

    model = ScriptedModel([turn("a b c", deltas=3)])
    live = await first_three(Cassette(path, model=model))

    assert (model.active, model.aborted) == (0, 1)
    assert await first_three(Cassette(path)) == live
    with pytest.raises(CassetteDrift, match="stopped reading here, after 3 events"):
        await play(Cassette(path), ask())


# -- drift ---------------------------------------------------------------------------------------------------------

USER = {"role": "user", "content": [{"text": "Add."}]}
ASKED = {"role": "assistant", "content": [use("add", {"a": 1}, id="T")]}
ANSWERED = {
    "role": "user",
    "content": [{"toolResult": {"toolUseId": "T", "status": "success", "content": [{"text": "3"}]}}],
}


def changed(change):
    messages = copy.deepcopy([USER, ASKED, ANSWERED])
    options = {"system": ({"text": "Be brief."},), "tool_specs": ()}
    change(messages, options)
    return ModelRequest(messages=messages, **options)


@pytest.mark.parametrize(
    ("change", "field", "recorded", "current"),
    [
        (lambda m, _: m[0]["content"][0].update(text="Sub."), "messages[0].content[0].text", "Add.", "Sub."),
        (
            lambda m, _: m[1]["content"][0]["toolUse"]["input"].update(a=True),
            "messages[1].content[0].toolUse.input.a",
            1,
            True,
        ),
        (
            lambda m, _: m[2]["content"][0]["toolResult"].update(status="error"),
            "messages[2].content[0].toolResult.status",
            "success",
            "error",
        ),
        (lambda _, o: o.update(system=()), "system[0]", {"text": "Be brief."}, ABSENT),
        (lambda _, o: o.update(purpose="summary"), "purpose", "turn", "summary"),
        (lambda _, o: o.update(tool_choice={"any": {}}), "tool_choice", None, {"any": {}}),
        (
            lambda m, _: m[0]["content"].append({"text": "More."}),
            "messages[0].content[1]",
            ABSENT,
            {"text": "More."},
        ),
        (lambda m, _: m.pop(), "messages[2]", ANSWERED, ABSENT),
    ],
)
async def test_drift_names_the_field_and_both_values(path, play, change, field, recorded, current):
    await play(Cassette(path, model=ScriptedModel(["ok"])), changed(lambda *_: None))
    with pytest.raises(CassetteDrift) as caught:
        await play(Cassette(path), changed(change))

    drift = caught.value
    assert (drift.call, drift.field, drift.recorded, drift.current) == (1, field, recorded, current)
    assert f"{field} differs from the recording" in str(drift)
    assert "--record-cassettes" in str(drift)
    assert not isinstance(drift, ModelError)


async def test_drift_in_a_long_text_shows_the_place(path, ask, play):
    await play(Cassette(path, model=ScriptedModel(["ok"])), ask("x" * 5000 + "old" + "y" * 5000))
    with pytest.raises(CassetteDrift) as caught:
        await play(Cassette(path), ask("x" * 5000 + "new" + "y" * 5000))

    assert "at character 5000" in str(caught.value)
    assert len(str(caught.value)) < 1000


async def test_drift_in_a_later_call_names_that_call(path, ask, play):
    recording = Cassette(path, model=ScriptedModel(["one", "two"]))
    await play(recording, ask("a"))
    await play(recording, ask("b"))
    playing = Cassette(path)
    await play(playing, ask("a"))

    with pytest.raises(CassetteDrift, match="model call 2: messages"):
        await play(playing, ask("c"))


async def test_one_call_more_or_less_is_drift(path, ask, play):
    await play(Cassette(path, model=ScriptedModel(["ok"])), ask())
    playing = Cassette(path)
    with pytest.raises(CassetteDrift, match=r"model call 1: it was recorded and not made"):
        playing.check_used_up()

    await play(playing, ask())
    with pytest.raises(CassetteDrift, match=r"model call 2: the recording has 1 calls"):
        await play(playing, ask())


async def test_fields_can_be_left_out_of_the_comparison(path, ask, play):
    await play(Cassette(path, model=ScriptedModel(["ok"])), ask("Monday", "ok", "same"))
    ignore = ["messages[*].content[0].text"]
    await play(Cassette(path, ignore=ignore), ask("Tuesday", "fine", "same"))

    with pytest.raises(CassetteDrift, match="purpose differs"):
        await play(Cassette(path, ignore=ignore), ask("Tuesday", purpose="other"))


# -- files ---------------------------------------------------------------------------------------------------------


async def test_the_file_is_readable_json_with_a_version(path, ask, play):
    await play(Cassette(path, model=ScriptedModel(["grüße"])), ask("naïve"))
    data = json.loads(path.read_text(encoding="utf-8"))

    assert list(data) == ["ropewalk-cassette", "model", "calls"]
    assert data["ropewalk-cassette"] == 1
    assert "grüße" in path.read_text(encoding="utf-8")
    assert "naïve" in path.read_text(encoding="utf-8")
    assert [each.name for each in path.parent.iterdir()] == ["run.json"]


async def test_the_file_holds_what_was_done_so_far(path, ask, play):
    recording = Cassette(path, model=ScriptedModel(["one", turn("two", stall=True)]))
    await play(recording, ask())
    async with aclosing(recording.stream(ask())) as stream:
        await anext(stream)
        calls = json.loads(path.read_text())["calls"]

        assert [call["end"] for call in calls] == ["complete"]

    assert [call["end"] for call in json.loads(path.read_text())["calls"]] == ["complete", "closed"]


async def test_a_file_that_cannot_be_written_leaves_the_old_one(path, ask, play, monkeypatch):
    await play(Cassette(path, model=ScriptedModel(["old"])), ask())
    before = path.read_bytes()
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(CassetteError, match=r"run\.json cannot be written: disk full"):
        await play(Cassette(path, model=ScriptedModel(["new"])), ask())

    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["run.json"]


def test_a_missing_cassette_says_how_to_record_it(path):
    with pytest.raises(MissingCassetteError, match="--record-cassettes") as caught:
        Cassette(path)

    assert caught.value.path == path


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "torn or no JSON"),
        (b'{"ropewalk-cassette": 1, "mod', "torn or no JSON"),
        (b"\xff\xfe\x00", "torn or no JSON"),
        (b"[]", "is no cassette"),
        (b'{"interactions": []}', "is no cassette"),
        (b'{"ropewalk-cassette": 2, "model": {}, "calls": []}', "has the version 2"),
        (b'{"ropewalk-cassette": 1, "model": {}}', "lacks its list `calls`"),
        (b'{"ropewalk-cassette": 1, "model": {}, "calls": [{}]}', "call 1: its request is no object"),
        (b'{"ropewalk-cassette": 1, "model": {}, "calls": [{"request": {}, "events": [3]}]}', "its events are no list"),
        (b'{"ropewalk-cassette": 1, "model": {}, "calls": [{"request": {}, "events": []}]}', "its end is none of"),
        (
            b'{"ropewalk-cassette": 1, "model": {}, "calls": [{"request": {}, "events": [], "end": "error"}]}',
            "its error is no object",
        ),
    ],
)
def test_a_torn_or_foreign_file_is_refused(tmp_path, content, complaint):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(CassetteError, match=complaint) as caught:
        Cassette(path)

    assert str(path) in str(caught.value)


def test_a_folder_is_no_cassette(tmp_path):
    with pytest.raises(CassetteError, match="cannot be read"):
        Cassette(tmp_path)


@pytest.mark.parametrize("model", [3, "bedrock:x", object()])
def test_what_is_no_model_cannot_be_recorded(path, model):
    with pytest.raises(CassetteError, match="is no model"):
        Cassette(path, model=model)


def test_recording_needs_a_model(path):
    with pytest.raises(CassetteError, match="has no model"):
        Cassette(path, record=True)
