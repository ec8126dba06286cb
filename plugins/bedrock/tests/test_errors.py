"""Each failure is one typed error, with the provider's own words (scenarios A6 and A22 are tested across packages)."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ropewalk.errors import (
    ContextWindowOverflowException,
    IncompleteStreamError,
    MalformedStreamError,
    ModelError,
    ModelThrottledException,
    UnknownModelError,
)
from ropewalk.kits.model_errors import ModelAuthError, ModelRequestError, ModelUnavailableError
from ropewalk_bedrock import BedrockModel
from ropewalk_bedrock.errors import translated
from ropewalk_testing import turn
from ropewalk_testing.servers import CUT, error_frame, event_frame, http_fault, stream_fault

HTML = b"<!DOCTYPE html><html><head><title>502</title></head><body><h1>Bad Gateway</h1>nginx</body></html>"
EXPIRED = "The security token included in the request is expired"
UNSUPPORTED = "The model returned the following errors: temperature: this parameter is not supported"

ANSWERED = {
    "throttled": (http_fault(429, "ThrottlingException", "Too many requests"), ModelThrottledException, "Too many"),
    "unavailable": (http_fault(503, "ServiceUnavailableException", "busy"), ModelUnavailableError, "busy"),
    "not ready": (http_fault(429, "ModelNotReadyException", "warming up"), ModelUnavailableError, "warming up"),
    "internal": (http_fault(500, "InternalServerException", "oops"), ModelUnavailableError, "oops"),
    "timed out": (http_fault(408, "ModelTimeoutException", "too slow"), ModelUnavailableError, "too slow"),
    "overflow": (
        http_fault(400, "ValidationException", "Input is too long for requested model."),
        ContextWindowOverflowException,
        "Input is too long",
    ),
    "denied": (http_fault(403, "AccessDeniedException", "no access to it"), ModelAuthError, "no access to it"),
    "expired": (http_fault(403, "ExpiredTokenException", EXPIRED), ModelAuthError, EXPIRED),
    "unknown key": (
        http_fault(403, "UnrecognizedClientException", "The security token is invalid"),
        ModelAuthError,
        "inv",
    ),
    "unknown model": (
        http_fault(400, "ValidationException", "The provided model identifier is invalid."),
        UnknownModelError,
        "The provided model identifier is invalid",
    ),
    "not in the region": (http_fault(404, "ResourceNotFoundException", "no such model"), UnknownModelError, "no such"),
    "unsupported parameter": (http_fault(400, "ValidationException", UNSUPPORTED), ModelRequestError, "temperature"),
    "html of a proxy": (http_fault(502, body=HTML), ModelUnavailableError, "Bad Gateway"),
    "html for everything": (http_fault(403, body=HTML), ModelAuthError, "Bad Gateway"),
    "nothing": (http_fault(500, body=b""), ModelUnavailableError, "500"),
}


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("fault", "kind", "words"), ANSWERED.values(), ids=ANSWERED)
async def test_an_error_in_place_of_an_answer(bedrock, request_of, drain, fault, kind, words, streaming):
    model, server = bedrock([fault, "never asked for"], streaming=streaming)

    with pytest.raises(ModelError) as caught:
        await drain(model, request_of())

    error = caught.value
    assert type(error) is kind
    assert words in str(error)
    assert "<html" not in str(error)
    assert model.model_id in str(error)
    assert (error.provider, error.status) == ("bedrock", fault.status)
    assert server.calls == 1  # boto3 does not repeat it: the agent does


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("throttlingException", ModelThrottledException),
        ("modelStreamErrorException", ModelUnavailableError),
        ("internalServerException", ModelUnavailableError),
        ("serviceUnavailableException", ModelUnavailableError),
        ("validationException", ModelRequestError),
    ],
)
@pytest.mark.parametrize("modelled", [True, False])
async def test_an_error_inside_the_stream(bedrock, request_of, code, kind, modelled):
    model, _ = bedrock([stream_fault(code, "it broke", after=["half"], modelled=modelled)])
    came = []

    async def read():
        async for event in model.stream(request_of()):
            came.append(event)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(ModelError, match="it broke") as caught:
        await read()

    assert type(caught.value) is kind
    assert caught.value.code == code
    assert any("half" in str(event) for event in came)


async def test_an_exception_in_the_stream_that_boto3_does_not_know_is_retryable(bedrock, request_of, drain):
    model, _ = bedrock([stream_fault("modelMeltedException", "it broke", after=["half"])])

    with pytest.raises(ModelUnavailableError, match="this version of boto3 does not know"):
        await drain(model, request_of())


async def test_the_wait_that_the_provider_asks_for_is_kept(bedrock, request_of, drain):
    model, _ = bedrock([http_fault(429, headers={"Retry-After": "7"})])

    with pytest.raises(ModelThrottledException) as caught:
        await drain(model, request_of())

    assert caught.value.retry_after == 7


# -- the line ----------------------------------------------------------------------------------------------------


async def test_a_cut_stream_is_a_retryable_error(bedrock, request_of, drain):
    model, _ = bedrock([turn("half", cut=True)])

    with pytest.raises(ModelUnavailableError) as caught:
        await drain(model, request_of())

    assert caught.value.retryable


async def test_a_cut_in_the_middle_of_an_event_is_a_retryable_error(bedrock, request_of, drain):
    frame = event_frame("messageStart", {"role": "assistant"})
    model, _ = bedrock([turn(raw=[frame, frame[:20], CUT])])

    with pytest.raises(ModelUnavailableError):
        await drain(model, request_of())


COMPLETE = [
    event_frame("messageStart", {"role": "assistant"}),
    event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "whole"}}),
    event_frame("contentBlockStop", {"contentBlockIndex": 0}),
    event_frame("messageStop", {"stopReason": "end_turn"}),
]
METADATA = event_frame("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {}})
AFTER = {
    "the end": (),
    "a cut": (CUT,),
    "a cut in the metadata": (METADATA[:30], CUT),
    "wrong bytes": (METADATA[:-4] + b"oops",),
    "an error": (error_frame("modelStreamErrorException", "tripped at the door"),),
}


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
async def test_an_answer_that_is_complete_is_not_paid_for_again_when_only_its_metadata_is_lost(
    bedrock, request_of, outcome, after
):
    model, server = bedrock([turn(raw=[*COMPLETE, *after]), "next"])

    answer = await outcome(model, request_of())

    assert (answer.message["content"], answer.stop_reason) == ([{"text": "whole"}], "end_turn")
    assert (await outcome(model, request_of())).message["content"] == [{"text": "next"}]
    assert len(server.requests) == 2


async def test_an_answer_whose_stop_is_damaged_is_not_complete(bedrock, request_of, outcome):
    stop = bytearray(COMPLETE[-1])
    stop[-6] ^= 1
    model, _ = bedrock([turn(raw=[*COMPLETE[:-1], bytes(stop), METADATA])])

    with pytest.raises(ModelError):
        await outcome(model, request_of())


async def test_a_silent_stream_is_a_retryable_error(bedrock, request_of, drain):
    from botocore.config import Config

    model, _ = bedrock([turn("half", stall=True)], boto_client_config=Config(read_timeout=0.2))

    with pytest.raises(ModelUnavailableError, match=r"[Rr]ead timed out|timeout"):
        await drain(model, request_of())


async def test_silence_before_the_answer_is_a_retryable_error(bedrock, request_of, drain):
    from botocore.config import Config

    model, _ = bedrock([turn(stall=True)], boto_client_config=Config(read_timeout=0.2))

    with pytest.raises(ModelUnavailableError):
        await drain(model, request_of())


async def test_nobody_at_the_endpoint_is_a_retryable_error(bedrock, request_of, drain):
    model, server = bedrock([])
    server.__exit__(None, None, None)

    with pytest.raises(ModelUnavailableError) as caught:
        await drain(model, request_of())

    assert server.url.removeprefix("http://") in str(caught.value)


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00" * 40,
        b"<html>not a stream</html>" * 4,
        event_frame("messageStart", {"role": "assistant"})[:-4] + b"\x00\x00\x00\x00",
    ],
    ids=["zeros", "html", "checksum"],
)
async def test_a_damaged_frame_is_a_malformed_stream(bedrock, request_of, drain, damage):
    model, _ = bedrock([turn(raw=[damage])])

    with pytest.raises(MalformedStreamError) as caught:
        await drain(model, request_of())

    assert caught.value.retryable


async def test_text_that_is_no_utf_8_is_a_malformed_stream(bedrock, request_of, drain):
    from ropewalk_testing.servers import frame

    headers = {":event-type": "contentBlockDelta", ":content-type": "application/json", ":message-type": "event"}
    payload = b'{"contentBlockIndex":0,"delta":{"text":"\xff\xfe"}}'
    model, _ = bedrock([turn(raw=[frame(headers, payload)])])

    with pytest.raises(MalformedStreamError):
        await drain(model, request_of())


@pytest.mark.parametrize(
    "delta", [{"text": None}, {"text": "a", "citation": {}}, {"toolUse": {"input": None}, "text": "a"}]
)
async def test_a_delta_of_nothing_or_of_two_things_is_a_malformed_stream(bedrock, request_of, drain, delta):
    model, _ = bedrock([turn(raw=[("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta})])])

    with pytest.raises(ModelError) as caught:
        await drain(model, request_of())

    assert isinstance(caught.value, MalformedStreamError)


async def test_an_error_frame_keeps_its_code_and_text(bedrock, request_of, drain):
    model, _ = bedrock([turn(raw=[error_frame("ThrottlingException", "slow down")])])

    with pytest.raises(ModelThrottledException, match="slow down") as caught:
        await drain(model, request_of())

    assert caught.value.code == "ThrottlingException"


# -- before the line ---------------------------------------------------------------------------------------------


async def test_missing_credentials_are_one_error_that_says_the_ways_to_fix_it(monkeypatch, bedrock, request_of, drain):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    model, server = bedrock(["never"])

    with pytest.raises(ModelAuthError) as caught:
        await drain(model, request_of())

    said = str(caught.value)
    for way in ("AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "aws configure", "aws sso login", "AWS_PROFILE",
                "boto_session", "api_key", "Unable to locate credentials"):  # fmt: skip
        assert way in said

    assert not caught.value.retryable
    assert server.requests == []


async def test_an_unknown_profile_is_an_auth_error(monkeypatch, bedrock, request_of, drain):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    model, _ = bedrock(["never"])

    with pytest.raises(ModelAuthError, match="nobody"):
        await drain(model, request_of())


async def test_a_region_that_is_no_name_is_refused(request_of, drain):
    with pytest.raises(ModelRequestError, match="not a region!"):
        await drain(BedrockModel(region_name="not a region!"), request_of())


@pytest.mark.parametrize(
    ("errno", "kind"), [(socket.EAI_NONAME, ModelRequestError), (socket.EAI_AGAIN, ModelUnavailableError)]
)
def test_a_host_that_does_not_exist_is_told_apart_from_a_name_server_that_does_not_answer(errno, kind):
    from botocore.exceptions import EndpointConnectionError
    from urllib3.exceptions import NameResolutionError

    reason = socket.gaierror(errno, "cannot be resolved")
    failed = NameResolutionError("bedrock-runtime.eu-nowhere-1.amazonaws.com", None, reason)
    failed.__cause__ = reason
    error = EndpointConnectionError(endpoint_url="https://bedrock-runtime.eu-nowhere-1.amazonaws.com", error=failed)

    told = translated(error, "m", "eu-nowhere-1")

    assert type(told) is kind
    assert "eu-nowhere-1.amazonaws.com" in str(told)


async def test_an_argument_that_boto3_does_not_know_is_refused_by_name(bedrock, request_of, drain):
    model, _ = bedrock(["never"], additional_args={"fooBar": 1})

    with pytest.raises(ModelRequestError, match="fooBar"):
        await drain(model, request_of())


async def test_a_failed_call_leaves_the_model_usable(bedrock, request_of, drain):
    model, _ = bedrock([http_fault(500), turn("half", cut=True), "whole"])
    for _ in range(2):
        with pytest.raises(ModelError):
            await drain(model, request_of())

    assert await drain(model, request_of())


async def test_many_failures_at_once_reach_their_own_callers(bedrock, request_of, drain):
    model, _ = bedrock(
        lambda received: http_fault(400, "ValidationException", received.body["messages"][0]["content"][0]["text"])
    )

    results = await asyncio.gather(*[drain(model, request_of(f"q{n}")) for n in range(5)], return_exceptions=True)

    assert [f"q{n}" in str(error) for n, error in enumerate(results)] == [True] * 5


def test_an_incomplete_answer_is_told_apart_from_a_malformed_one():
    assert not issubclass(IncompleteStreamError, MalformedStreamError)
