"""Failed calls are repeated where that can help, and raised in the provider's words where it cannot (scenario A22)."""

from __future__ import annotations

import pytest
from provider_wires import over_http

from ropewalk import ModelRetryStrategy
from ropewalk.kits.model_errors import ModelAuthError, ModelUnavailableError
from ropewalk_testing import turn
from ropewalk_testing.servers import http_fault, stream_fault

PATIENCE = 1.5
"""Seconds that a model waits for a silent server; also for one that is only slow, on a busy machine."""

TRANSIENT = {
    "throttling": 429, "serviceUnavailable": 503, "modelNotReady": 429,
    "internalServer": 500, "modelTimeout": 408, "modelStreamError": 424,
}  # fmt: skip
SPELLINGS = {
    spelling: status
    for code, status in TRANSIENT.items()
    for spelling in (f"{code}Exception", f"{code[0].upper()}{code[1:]}Exception")
}


def at_once(status, code, **given):
    return http_fault(status, code, "it failed", **given)


def after_half(code, **given):
    return stream_fault(code, "it failed", after=["half"], **given)


BEFORE = {spelling: at_once(status, spelling) for spelling, status in SPELLINGS.items()}
BROKEN = {"dropped connection": turn("half", cut=True), "read timeout": turn("half", stall=True)}
FAULTS = {
    "bedrock": (
        BEFORE,
        {
            **{f"{code}Exception in the stream": after_half(f"{code}Exception") for code in TRANSIENT},
            **{
                f"{spelling}, not modelled": after_half(spelling, modelled=False)
                for spelling in SPELLINGS
                if spelling[0].isupper() and spelling != "ModelStreamErrorException"
            },
            **BROKEN,
        },
    ),
    "litellm": (
        {
            **BEFORE,
            "rate_limit_exceeded": at_once(429, "rate_limit_exceeded"),
            "server_error": at_once(500, "server_error"),
            "a page": http_fault(502, body=b"<html><body>it failed</body></html>"),
            "silence": turn(stall=True),
        },
        {
            **{
                f"{code} in the stream": after_half(code)
                for code in [*SPELLINGS, "rate_limit_exceeded", "server_error"]
            },
            **BROKEN,
        },
    ),
}
CASES = [
    pytest.param(wire, fault, said, id=f"{wire}-{name}")
    for wire, tables in FAULTS.items()
    for table, said in zip(tables, ("", "half"), strict=True)
    for name, fault in table.items()
]


@pytest.mark.parametrize(("provider", "fault", "said"), CASES, indirect=["provider"])
def test_a_transient_error_is_repeated_and_consumers_are_told(provider, events_of, shape, waits, fault, said):
    """Scenario A22."""
    impatient = {"patience": PATIENCE} if getattr(fault, "stall", None) else {}
    agent, server = provider.make([fault, "whole"], retry_strategy=ModelRetryStrategy(jitter=0), **impatient)

    events = events_of(agent, "go")

    result = events[-1]["result"]
    assert (server.calls, waits) == (2, [4])
    assert (result.metrics.model_calls, result.metrics.cycle_count, str(result)) == (2, 1, "whole\n")
    (told,) = [event for event in events if "attempt_discarded" in event]
    before = events[: events.index(told)]
    assert "".join(event["data"] for event in before if "data" in event) == said
    assert shape(agent.messages) == [("user", [{"text": "go"}]), ("assistant", [{"text": "whole"}])]


REFUSALS = {
    "bedrock-denied": ("bedrock", http_fault(403, "AccessDeniedException", "not yours")),
    "bedrock-denied in camel case": ("bedrock", http_fault(403, "accessDeniedException", "not yours")),
    "litellm-denied": ("litellm", http_fault(403, "AccessDeniedException", "not yours")),
    "litellm-used up": ("litellm", http_fault(429, "insufficient_quota", "not yours")),
}


@pytest.mark.parametrize(("provider", "fault"), REFUSALS.values(), ids=REFUSALS, indirect=["provider"])
def test_a_refusal_is_not_repeated(ask, provider, waits, fault):
    """Scenario A22."""
    agent, server = provider.make([fault, "whole"])

    with pytest.raises(ModelAuthError, match="not yours"):
        ask(agent, "go")

    assert (server.calls, waits) == (1, [])
    assert str(ask(agent, "again")) == "whole\n"


@over_http
def test_an_error_that_stays_is_raised_with_the_providers_words(provider, waits):
    """The kind behind A22."""
    fault = http_fault(503, provider.codes["busy"], "come back later")
    agent, server = provider.make([fault] * 3, retry_strategy=ModelRetryStrategy(max_attempts=3, jitter=0))

    with pytest.raises(ModelUnavailableError, match="come back later"):
        agent("go")

    assert (server.calls, waits) == (3, [4, 8])
