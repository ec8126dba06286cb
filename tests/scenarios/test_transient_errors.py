"""Transient errors beyond one throttle name (scenario A22)."""

from __future__ import annotations

import pytest

from ropewalk import ModelRetryStrategy
from ropewalk.errors import ModelError
from ropewalk_testing import assert_valid_history, turn

CODES = ["throttling", "serviceUnavailable", "modelNotReady", "internalServer", "modelTimeout", "modelStreamError"]
SPELLINGS = [spelling for code in CODES for spelling in (f"{code}Exception", f"{code[0].upper()}{code[1:]}Exception")]


def of_library(module, *names):
    """An error of a library that is not installed here: its classes, base first."""
    cls = Exception
    for name in names:
        cls = type(name, (cls,), {"__module__": module})

    return cls("it failed")


def of_service(code):
    error = of_library("botocore.exceptions", "ClientError")
    error.response = {"Error": {"Code": code, "Message": "it failed"}}
    return error


FAULTS = {
    **{code: of_service(code) for code in SPELLINGS},
    "read timeout": of_library("botocore.exceptions", "BotoCoreError", "HTTPClientError", "ReadTimeoutError"),
    "read timeout of urllib3": of_library("urllib3.exceptions", "HTTPError", "TimeoutError", "ReadTimeoutError"),
    "read timeout of httpx": of_library("httpx", "TransportError", "TimeoutException", "ReadTimeout"),
    "dropped connection": ConnectionResetError("reset by peer"),
    "dropped connection of httpx": of_library("httpx", "TransportError", "ProtocolError", "RemoteProtocolError"),
    "busy": ModelError("overloaded", retryable=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["before the stream", "after half"])
def test_a_transient_error_is_repeated_and_consumers_are_told(make_agent, events_of, shape, waits, fault, streamed):
    agent, model = make_agent(
        [turn("half", error=fault) if streamed else fault, "whole"], retry_strategy=ModelRetryStrategy(jitter=0)
    )

    events = events_of(agent, "go")

    result = events[-1]["result"]
    assert (model.calls, waits) == (2, [4])
    assert (result.metrics.model_calls, result.metrics.cycle_count, str(result)) == (2, 1, "whole\n")
    (told,) = [event for event in events if "attempt_discarded" in event]
    assert told["attempt_discarded"]["attempt"] == 1
    assert told["event_loop_throttled_delay"] == 4
    before = events[: events.index(told)]
    assert [event["data"] for event in before if event.get("data")] == (["half"] if streamed else [])
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]


@pytest.mark.parametrize("code", ["AccessDeniedException", "accessDeniedException", "ValidationException"])
@pytest.mark.parametrize("streamed", [False, True], ids=["before the stream", "after half"])
def test_a_final_error_is_raised_at_once(ask, make_agent, waits, code, streamed):
    fault = of_service(code)
    agent, model = make_agent([turn("half", error=fault) if streamed else fault, "whole"])

    with pytest.raises(type(fault), match="it failed"):
        ask(agent, "go")

    assert (model.calls, waits) == (1, [])
    assert str(ask(agent, "again")) == "whole\n"
    assert_valid_history(agent.messages)


def test_an_error_of_a_hook_is_not_taken_for_the_models(make_agent, waits):
    """The kind behind it: only what the model raises is repeated."""
    from ropewalk import hookimpl

    class Broken:
        name = "broken"

        @hookimpl
        async def around_model_call(self, request, call_next):
            await call_next(request)
            raise ConnectionError("of the hook")

    agent, model = make_agent(["hi", "ho"], plugins=[Broken()])
    with pytest.raises(ConnectionError, match="of the hook"):
        agent("go")

    assert (model.calls, waits) == (1, [])
