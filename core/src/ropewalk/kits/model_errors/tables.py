"""How providers word their failures: rows of data, the first that matches decides.

A row matches when everything that it names does; a part left out matches anything. Codes are compared without case,
punctuation and an ending Exception or Error, so that one spelling stands for all; texts are searched for, without
case. Rows that say no (`bad_request` for what only looks like an overflow) stand before those that they guard against.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, Literal, NamedTuple, TypeAlias

FailureClass: TypeAlias = Literal[
    "overflow", "throttle", "transient", "auth", "content_filter", "not_found", "bad_request"
]


class Row(NamedTuple):
    """One way in which a provider reports one kind of failure.

    Attributes:
        failure: What it is.
        provider: Whose wording it is; `"*"` is anybody's.
        codes: Error codes or class names, separated by blanks.
        status: HTTP statuses; None among them stands for a failure without one.
        text: A regular expression.
    """

    failure: FailureClass
    provider: str = "*"
    codes: str = ""
    status: Container[int | None] | None = None
    text: str = ""


FAMILIES: Final[dict[str, tuple[str, ...]]] = {"litellm": ("litellm", "openai", "bedrock")}
"""Providers that also pass on what others say."""

_UNCLEAR: Final = (None, 500, 503)  # with any other status it is not the text that decides

# A used-up account comes with the status of a throttle, but waiting does not help.
QUOTA: Final = (
    Row("auth", "litellm", "BudgetExceededError"),
    Row("auth", "openai", "insufficient_quota billing_hard_limit_reached billing_not_active credits_exhausted"),
    Row("throttle", "openai", text=r"current quota.*(per.?minute|per.?day|retry in)"),
    Row("auth", "openai", text=r"insufficient_quota|exceeded your current quota|credit balance is too low"),
)

# One request that is larger than a minute's tokens comes with the status of a throttle; a shorter one fits.
LARGER_THAN_A_MINUTE: Final = (
    Row("overflow", "openai", text=r"request too large for .{0,300}\b(tokens per min|TPM\b)"),
)

# Before the texts of overflows, because a throttle names numbers of tokens too.
THROTTLES: Final = (
    Row("transient", "bedrock", "ModelNotReadyException"),  # its status is 429
    Row("throttle", "bedrock", "ServiceQuotaExceededException LimitExceededException BandwidthLimitExceeded"),
    Row("throttle", "openai", "rate_limit_exceeded tokens requests"),
    Row("throttle", "*", "ThrottlingException Throttled ThrottledException RequestThrottled TooManyRequests"),
    Row("throttle", "*", "RateLimitError RequestLimitExceeded SlowDown ProvisionedThroughputExceededException"),
    Row("throttle", "*", status=(429,)),
    Row("throttle", "*", status=_UNCLEAR, text=r"(tokens?|requests?) per (sec|min|hour|day)|\bTPM\b|\bRPM\b"),
    Row("throttle", "*", status=_UNCLEAR, text=r"rate.?limit(ed)?\b.{0,20}\b(reached|exceeded)"),
    Row("throttle", "*", status=_UNCLEAR, text=r"too many requests|wait before trying again"),
)

NO_OVERFLOW: Final = (
    Row("bad_request", "*", text=r"too long for this field"),
    Row("bad_request", "*", text=r"maximum tokens you requested exceeds"),  # a cap on the answer
    Row("bad_request", "*", text=r"maximum allowed number of output tokens|at most \d+ completion tokens"),
)

OVERFLOWS: Final = (
    Row("overflow", "openai", "context_length_exceeded"),
    Row("overflow", "litellm", "ContextWindowExceededError"),
    Row("overflow", "bedrock", text=r"input is too long for (the )?requested model"),
    Row("overflow", "bedrock", text=r"too many input tokens|input tokens exceeded"),
    Row("overflow", "*", text=r"(prompt|input|conversation|request) is too long"),
    Row("overflow", "*", text=r"exceed\w*( \w+){0,3} context (limit|window|length|size)"),
    Row("overflow", "*", text=r"context (limit|window|length|size) (was |is )?exceeded|context_length_exceeded"),
    Row("overflow", "*", text=r"maximum (context|prompt) length"),
    Row("overflow", "*", text=r"longer than the model.?s context"),
    Row("overflow", "*", text=r"input token count.{0,60}exceeds"),
    Row("overflow", "*", text=r"too many (input )?tokens|input tokens exceeded"),
    Row("overflow", "*", "request_too_large"),
    Row("overflow", "*", status=(413,)),  # too many bytes: a shorter history helps here too
)

REFUSED: Final = (
    Row("content_filter", "litellm", "ContentPolicyViolationError"),
    Row("content_filter", "openai", "content_policy_violation content_filter moderation_blocked"),
    Row("content_filter", "*", text=r"content (management|filter(ing)?|usage|safety) polic"),
    Row("content_filter", "*", text=r"content_policy_violation|safety system|blocked by (the |our )?(content|safety)"),
)

ACCOUNTS: Final = (
    Row("auth", "bedrock", "AccessDeniedException ExpiredTokenException ExpiredToken UnrecognizedClientException"),
    Row("auth", "bedrock", "InvalidSignatureException SignatureDoesNotMatch IncompleteSignature InvalidClientTokenId"),
    Row(
        "auth", "bedrock", "MissingAuthenticationToken NotAuthorized OptInRequired RequestExpired RequestTimeTooSkewed"
    ),
    Row("auth", "bedrock", "NoCredentialsError PartialCredentialsError CredentialRetrievalError ProfileNotFound"),
    Row(
        "auth",
        "bedrock",
        "RequestTimeTooSkewed TokenRetrievalError SSOTokenLoadError UnauthorizedSSOTokenError NoAuthTokenError",
    ),
    Row("auth", "openai", "invalid_api_key account_deactivated invalid_organization"),
    Row("auth", "*", "AuthenticationError PermissionDenied PermissionError AccessDenied Unauthorized Forbidden"),
    Row("auth", "*", status=(401, 402, 403)),
    Row("auth", "litellm", text=r"api_key client option must be set|missing credentials|incorrect api key"),
)

MODELS: Final = (
    Row("not_found", "bedrock", "ResourceNotFoundException"),
    Row("not_found", "bedrock", text=r"provided model identifier is invalid|on-demand throughput isn.t supported"),
    Row("not_found", "litellm", text=r"LLM provider not provided|invalid model name"),
    Row("not_found", "openai", "model_not_found"),
    Row("not_found", "openai", text=r"model .{0,100}does not exist"),
    Row("not_found", "*", "NotFoundError"),
    Row("not_found", "*", status=(404, 410)),
)

CONNECTIONS: Final = (
    Row("bad_request", "*", text=r"certificate.?verify.?failed|certificate verification"),  # not who it should be
    Row("transient", "*", "SSLError", text=r"EOF occurred|unexpected eof|reset by peer|timed out"),  # it was cut
    Row("bad_request", "*", "SSLError"),
    Row("transient", "bedrock", "EndpointConnectionError ConnectTimeoutError ConnectionClosedError ReadTimeoutError"),
    Row("transient", "bedrock", "HTTPClientError IncompleteReadError ResponseStreamingError ProxyConnectionError"),
    Row("transient", "openai", "APIConnectionError APITimeoutError"),
    Row("transient", "*", "TimeoutError ReadTimeout ConnectTimeout PoolTimeout ConnectionError ConnectionResetError"),
    Row("transient", "*", "ReadError ConnectError RemoteProtocolError ProtocolError ChunkedEncodingError"),
    Row("transient", "*", "ConnectionRefusedError ConnectionAbortedError BrokenPipeError IncompleteRead"),
)

OVERLOADS: Final = (
    # LiteLLM's own verdict on a long answer, told as a fault of the server: the same would be paid for again.
    Row("bad_request", "litellm", text=r"model is repeating the same chunk"),
    Row("transient", "bedrock", "ModelErrorException ModelTimeoutException ModelStreamErrorException"),
    Row("transient", "litellm", "MidStreamFallbackError BadGatewayError"),
    Row("transient", "openai", "server_error overloaded_error engine_overloaded"),
    Row("transient", "*", "ServiceUnavailableException InternalServerException InternalFailure"),
    Row("transient", "*", "RequestTimeout ModelTimeout ModelStream ModelNotReady ServiceUnavailable"),
    Row("transient", "*", status=(408, 409, 425, 500, 502, 503, 504, *range(520, 525), 529)),
)

# What is left when neither code nor status has said it.
LAST: Final = (
    Row("bad_request", "*", "ValidationException ParamValidationError BadRequestError UnprocessableEntityError"),
    Row("bad_request", "*", "UnsupportedParamsError invalid_request_error unsupported_parameter NoRegionError"),
    Row("bad_request", "*", status=range(400, 500)),
    Row("transient", "litellm", "APIError APIResponseValidationError"),
    Row("transient", "*", text=r"timed? ?out|connection (was )?(reset|refused|closed|aborted|error)|overloaded"),
    Row("transient", "*", text=r"service unavailable|bad gateway|gateway time-?out|internal server error"),
    Row("auth", "*", text=r"unauthorized|invalid api key|security token.{0,40}(invalid|expired)"),
    Row("bad_request"),
)

ROWS: Final[tuple[Row, ...]] = (
    *QUOTA,
    *LARGER_THAN_A_MINUTE,
    *THROTTLES,
    *NO_OVERFLOW,
    *OVERFLOWS,
    *REFUSED,
    *ACCOUNTS,
    *MODELS,
    *CONNECTIONS,
    *OVERLOADS,
    *LAST,
)
