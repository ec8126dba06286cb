"""Secrets that must not be in a recording."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.errors import ModelError
from ropewalk_testing import ScriptedModel, reasoning, turn, use
from ropewalk_testing.cassettes import REDACTED, Cassette, Redactor

CANARY = "c4n4ry-Xy7!q"


@pytest.fixture
def redactor():
    return Redactor(environ={})


@pytest.mark.parametrize(
    "key",
    [
        "authorization",
        "Authorization",
        "proxy-authorization",
        "api_key",
        "x-api-key",
        "apiKey",
        "OPENAI_API_KEY",
        "token",
        "access_token",
        "aws_secret_access_key",
        "aws_session_token",
        "client_secret",
        "password",
        "db_passwd",
        "Set-Cookie",
        "private_key",
        "credentials",
    ],
)
def test_values_under_keys_of_secrets_are_removed(redactor, key):
    value = {key: CANARY, "deep": [{key: [CANARY, {"x": CANARY}]}]}

    assert redactor.value(value) == {key: REDACTED, "deep": [{key: [REDACTED, {"x": REDACTED}]}]}
    assert CANARY not in redactor.text(f'{{"{key}": "{CANARY}"}}')
    assert CANARY not in redactor.text(json.dumps(json.dumps({"a": {key: f"{CANARY} b"}})))
    assert CANARY not in redactor.text(f"{key}={CANARY}")
    assert CANARY not in redactor.text(f"with {key}: Bearer {CANARY}, please")


@pytest.mark.parametrize("key", ["inputTokens", "max_tokens", "tokens", "secretary", "author", "keyboard", "passage"])
def test_other_keys_are_left_alone(redactor, key):
    assert redactor.value({key: "plain"}) == {key: "plain"}
    assert redactor.text(f'{{"{key}": "plain"}} {key}=plain') == f'{{"{key}": "plain"}} {key}=plain'


def test_the_schema_of_a_secret_is_none(redactor):
    schema = {"properties": {"password": {"type": "string", "description": "Yours."}}}

    assert redactor.value(schema) == schema


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-1234567890-abcdef",
        "hf_abcdefghijklmnopqrstuvwx",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_123",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_keys_are_known_by_their_form(redactor, secret):
    assert redactor.text(f"it is {secret} there") == f"it is {REDACTED} there"


def test_passwords_in_addresses_are_removed(redactor):
    assert redactor.text("postgres://ann:hunter2@db/x") == f"postgres://{REDACTED}@db/x"


def test_values_of_the_environment_are_removed():
    environ = {"ACME_TOKEN": "plain-looking", "SHORT_KEY": "abc", "HOME": "/home/somebody"}
    redactor = Redactor(environ=environ)

    assert redactor.text("plain-looking abc /home/somebody") == f"{REDACTED} abc /home/somebody"


def test_a_pattern_and_a_key_of_ones_own():
    redactor = Redactor([r"cust-\d+"], ["badge number"], environ={})

    assert redactor.value({"badge number": "7", "x": "cust-12 cust-x"}) == {
        "badge number": REDACTED,
        "x": f"{REDACTED} cust-x",
    }


@pytest.mark.parametrize("unit", ["a", '"', "\\", '\\"', " ", "://", "eyJ", "sk-", 'a": "'])
def test_a_text_of_a_megabyte_is_no_trouble(redactor, unit):
    text = unit * (1_000_000 // len(unit))

    assert redactor.text(text) in (text, REDACTED)


def test_an_escaped_quote_does_not_end_a_secret(redactor):
    text = json.dumps({"password": f'a", {CANARY}', "b": "kept"})

    assert json.loads(redactor.text(text)) == {"password": REDACTED, "b": "kept"}


@given(cuts=st.lists(st.integers(0, 200), max_size=12))
def test_a_secret_is_found_in_whatever_pieces_it_comes(cuts):
    redactor = Redactor(environ={})
    whole = json.dumps({"note": "hi", "api_key": CANARY, "more": "sk-abcdefghijklmnop1234 ok"})
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    pieces = [whole[a:b] for a, b in pairwise(places)]

    redacted = redactor.pieces(pieces)

    assert len(redacted) == len(pieces)
    assert json.loads("".join(redacted)) == {"note": "hi", "api_key": REDACTED, "more": f"{REDACTED} ok"}


@given(st.text(alphabet=' ab"\\:=,{}-<>\n', max_size=40))
def test_doing_it_twice_changes_nothing_more(noise):
    redactor = Redactor(environ={})
    once = redactor.text(f"{noise} token=abc {noise} password: {noise}")

    assert redactor.text(once) == once


async def test_a_canary_in_every_place_is_not_in_the_file(tmp_path, ask, play, monkeypatch):
    canary = "sk-canary0123456789abcdef"
    monkeypatch.setenv("ACME_TOKEN", "canary-of-the-environment")
    path = tmp_path / "run.json"
    said = [
        turn(f"it is {canary}", reasoning(f"hm {canary}"), use("login", {"password": "canary one"}, id="T"), deltas=20),
        turn("half", error=ModelError(f"401 for {canary}: canary-of-the-environment")),
        turn(raw=[{"odd": {"authorization": "canary two"}}]),
    ]
    request = ask(f"key {canary}", system=({"text": "api_key=canary3"},), output_schema={"description": canary})
    request.messages.append({"role": "assistant", "content": [use("login", {"password": "canary4"}, id="T")]})
    recording = Cassette(path, model=ScriptedModel(said), redact=[r"ssn \d+"])
    live = await play(recording, request)
    with pytest.raises(ModelError):
        await play(recording, ask("canary-of-the-environment"))

    await play(recording, ask("ssn 123"))

    text = path.read_text()
    assert "canary" not in text
    assert "ssn 123" not in text
    assert canary in "".join(e["contentBlockDelta"]["delta"].get("text", "") for e in live if "contentBlockDelta" in e)


async def test_what_was_redacted_can_be_played(tmp_path, ask, play):
    path = tmp_path / "run.json"
    said = turn(use("login", {"password": "canary one", "user": "ann"}, id="T"), deltas=9)
    await play(Cassette(path, model=ScriptedModel([said])), ask("token: abcdefgh"))

    events = await play(Cassette(path), ask("token: another"))

    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert json.loads("".join(delta["toolUse"]["input"] for delta in deltas)) == {"password": REDACTED, "user": "ann"}
