from __future__ import annotations

import time

import pytest

from ropewalk.kits.model_errors.classify import bare_code, classify
from ropewalk.kits.model_errors.tables import ROWS

HTML = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1>nginx</body></html>"

OVERFLOWS = [
    "prompt is too long: 203470 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 142422 + 64000 > 204658",
    "Input is too long for requested model",
    "This model's maximum context length is 131072 tokens",
    "The input (400013 tokens) is longer than the model's context length (262144 tokens).",
    "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
    "Input Tokens Exceeded: 9000 of 8192",
    "the request exceeds the available context size, try increasing it",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
]
NO_OVERFLOWS = [
    "messages.0.content is too long for this field",
    "The maximum tokens you requested exceeds the model limit of 2048",
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for this model",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
    "max_tokens must be greater than thinking.budget_tokens",
    "tools.0.name: too long",
]


@pytest.mark.parametrize(("provider", "code"), [("bedrock", "ValidationException"), ("litellm", "BadRequestError")])
class TestTextsOfTheSameRefusal:
    @pytest.mark.parametrize("change", [str, str.upper, str.lower])
    @pytest.mark.parametrize("text", OVERFLOWS)
    def test_an_overflow_is_one_on_every_provider_and_in_any_case(self, provider, code, text, change):
        assert classify(provider, code=code, status=400, text=change(text)) == "overflow"
        assert classify(provider, text=change(text)) == "overflow"

    @pytest.mark.parametrize("text", NO_OVERFLOWS)
    def test_what_looks_like_an_overflow_is_none(self, provider, code, text):
        assert classify(provider, code=code, status=400, text=text) == "bad_request"

    def test_a_throttle_that_names_tokens_is_no_overflow(self, provider, code):
        text = "Rate limit reached: too many tokens per minute, the input token count exceeds the maximum"
        assert classify(provider, status=429, text=text) == "throttle"
        assert classify(provider, text=text) == "throttle"


@pytest.mark.parametrize("unit", ["tokens per min (TPM)", "tokens per minute (TPM)"])
def test_a_request_that_is_larger_than_a_minutes_tokens_is_to_be_shortened_and_not_repeated(unit):
    text = f"Request too large for gpt-4o in organization org-x on {unit}: Limit 30000, Requested 33064."
    reached = f"Rate limit reached for gpt-4o in organization org-x on {unit}: Limit 30000, Used 29000."
    for status in (429, 413, None):
        assert classify("litellm", code="rate_limit_exceeded", status=status, text=text) == "overflow"
        assert classify("litellm", code="rate_limit_exceeded", status=status, text=reached) == "throttle"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred in violation of protocol", "transient"),
        ("The handshake operation timed out", "transient"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "bad_request"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate", "bad_request"),
    ],
)
def test_a_connection_that_was_cut_while_its_encryption_began_is_no_wrong_certificate(text, kind):
    assert classify("bedrock", code="SSLError", text=text) == kind


def test_an_answer_that_litellm_ends_because_it_repeats_itself_is_not_paid_for_again():
    text = "The model is repeating the same chunk = ----."
    assert classify("litellm", code="InternalServerError", status=500, text=text) == "bad_request"


CODES = [
    ("bedrock", "ThrottlingException", 429, "throttle"),
    ("bedrock", "ServiceQuotaExceededException", 400, "throttle"),
    ("bedrock", "ModelNotReadyException", 429, "transient"),
    ("bedrock", "ServiceUnavailableException", 503, "transient"),
    ("bedrock", "InternalServerException", 500, "transient"),
    ("bedrock", "ModelTimeoutException", 408, "transient"),
    ("bedrock", "ModelStreamErrorException", 424, "transient"),
    ("bedrock", "ModelErrorException", 424, "transient"),
    ("bedrock", "ReadTimeoutError", None, "transient"),
    ("bedrock", "EndpointConnectionError", None, "transient"),
    ("bedrock", "ConnectionClosedError", None, "transient"),
    ("bedrock", "ResponseStreamingError", None, "transient"),
    ("bedrock", "ValidationException", 400, "bad_request"),
    ("bedrock", "ParamValidationError", None, "bad_request"),
    ("bedrock", "SSLError", None, "bad_request"),
    ("bedrock", "AccessDeniedException", 403, "auth"),
    ("bedrock", "ExpiredTokenException", 403, "auth"),
    ("bedrock", "UnrecognizedClientException", 403, "auth"),
    ("bedrock", "InvalidSignatureException", 403, "auth"),
    ("bedrock", "NoCredentialsError", None, "auth"),
    ("bedrock", "ResourceNotFoundException", 404, "not_found"),
    ("openai", "context_length_exceeded", 400, "overflow"),
    ("openai", "rate_limit_exceeded", 429, "throttle"),
    ("openai", "insufficient_quota", 429, "auth"),
    ("openai", "invalid_api_key", 401, "auth"),
    ("openai", "content_policy_violation", 400, "content_filter"),
    ("openai", "content_filter", 400, "content_filter"),
    ("openai", "model_not_found", 404, "not_found"),
    ("openai", "invalid_request_error", 400, "bad_request"),
    ("openai", "server_error", 500, "transient"),
    ("openai", "overloaded_error", 529, "transient"),
    ("litellm", "ContextWindowExceededError", 400, "overflow"),
    ("litellm", "RateLimitError", 429, "throttle"),
    ("litellm", "insufficient_quota", 429, "auth"),
    ("litellm", "BudgetExceededError", 400, "auth"),
    ("litellm", "ServiceUnavailableError", 503, "transient"),
    ("litellm", "InternalServerError", 500, "transient"),
    ("litellm", "APIConnectionError", 500, "transient"),
    ("litellm", "Timeout", 408, "transient"),
    ("litellm", "MidStreamFallbackError", 503, "transient"),
    ("litellm", "APIError", None, "transient"),
    ("litellm", "AuthenticationError", 401, "auth"),
    ("litellm", "PermissionDeniedError", 403, "auth"),
    ("litellm", "ContentPolicyViolationError", 400, "content_filter"),
    ("litellm", "NotFoundError", 404, "not_found"),
    ("litellm", "BadRequestError", 400, "bad_request"),
    ("litellm", "UnprocessableEntityError", 422, "bad_request"),
    ("litellm", "UnsupportedParamsError", 400, "bad_request"),
]


def camel(code):
    return code[0].lower() + code[1:]


@pytest.mark.parametrize(("provider", "code", "status", "failure"), CODES)
class TestCodes:
    def test_a_code_with_its_status_names_the_failure(self, provider, code, status, failure):
        assert classify(provider, code=code, status=status, text="something went wrong") == failure

    def test_a_code_alone_is_enough(self, provider, code, status, failure):
        assert classify(provider, code=code) == failure

    def test_the_other_spelling_is_the_same_code(self, provider, code, status, failure):
        assert classify(provider.upper(), code=camel(code), status=status) == failure
        assert classify(provider, code=f"com.amazonaws#{code}:https://x.test/", status=status) == failure


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (400, "bad_request"),
        (401, "auth"),
        (402, "auth"),
        (403, "auth"),
        (404, "not_found"),
        (408, "transient"),
        (413, "overflow"),
        (422, "bad_request"),
        (429, "throttle"),
        (500, "transient"),
        (501, "bad_request"),
        (502, "transient"),
        (503, "transient"),
        (504, "transient"),
        (529, "transient"),
    ],
)
@pytest.mark.parametrize("provider", ["bedrock", "litellm", "somebody"])
def test_a_status_with_an_html_page_is_enough(provider, status, failure):
    assert classify(provider, status=status, text=HTML.format("nothing of use")) == failure
    assert classify(provider, code=str(status)) == failure


@pytest.mark.parametrize(
    ("provider", "facts", "text", "failure"),
    [
        ("bedrock", ("ValidationException", 400), "The provided model identifier is invalid.", "not_found"),
        (
            "bedrock",
            ("ValidationException", 400),
            "Invocation of model ID a.b with on-demand throughput isn\u2019t supported.",
            "not_found",
        ),
        ("bedrock", ("ThrottlingException", 429), "Too many tokens, please wait before trying again.", "throttle"),
        ("bedrock", ("ModelStreamErrorException", None), "Input is too long for requested model.", "overflow"),
        ("litellm", ("BadRequestError", 400), "LLM Provider NOT provided. Pass in the LLM provider", "not_found"),
        ("litellm", ("BadRequestError", 400), "The model `x` does not exist or you do not have access", "not_found"),
        ("litellm", ("RateLimitError", 429), "You exceeded your current quota, please check your plan", "auth"),
        ("litellm", ("RateLimitError", 429), "exceeded your current quota. Please retry in 30s.", "throttle"),
        (
            "litellm",
            ("BadRequestError", 400),
            "The response was filtered due to Azure OpenAI's content management policy",
            "content_filter",
        ),
        ("litellm", ("BadRequestError", 400), "Output blocked by content filtering policy", "content_filter"),
        ("litellm", (None, None), "Too many requests", "throttle"),
        ("litellm", (None, None), "Read timed out", "transient"),
        ("litellm", ("APIConnectionError", 500), "SSL: CERTIFICATE_VERIFY_FAILED", "bad_request"),
        ("somebody", (None, None), "no idea", "bad_request"),
    ],
)
def test_a_text_says_more_than_a_common_code(provider, facts, text, failure):
    code, status = facts
    assert classify(provider, code=code, status=status, text=text) == failure


def test_the_code_of_one_provider_is_not_read_as_another_ones():
    assert classify("openai", code="insufficient_quota") == "auth"
    assert classify("bedrock", code="insufficient_quota", status=429) == "throttle"


@pytest.mark.parametrize("code", ["", "Error", "Exception", "!!", "é", "#", "."])
def test_a_code_without_a_name_is_no_failure_of_its_own(code):
    assert classify("bedrock", code=code) == "bad_request"


def test_a_name_that_is_an_ending_only_stays():
    assert bare_code("Error") == "error"
    assert bare_code("exception") == "exception"


def test_a_giant_text_is_read_at_its_beginning_only():
    begin = time.process_time()
    assert classify("bedrock", text="exceed " * 1_000_000) == "bad_request"
    assert time.process_time() - begin < 5  # of CPU: a pattern that goes wild takes minutes


def test_every_row_names_something_but_the_last():
    assert [row for row in ROWS if not (row.codes or row.status or row.text)] == [ROWS[-1]]
    assert ROWS[-1].failure == "bad_request"
