"""What can be set on a Bedrock model, checked when it is set."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_MODEL: Final = "us.anthropic.claude-sonnet-4-20250514-v1:0"
"""The model of an agent that was given none: an inference profile of the regions in the United States."""

CacheTtl = Literal["5m", "1h"]


class CacheConfig(BaseModel):
    """Where cache points are set in the messages without the caller's doing.

    Attributes:
        strategy: `"auto"` sets them at the ends of the last two user turns, for models that cache; `"anthropic"` does
            so without looking at the model's id, which an application inference profile needs.
        ttl: How long the provider keeps it; the provider's default when None.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Literal["auto", "anthropic"] = "auto"
    ttl: CacheTtl | None = None


class CachePoint(BaseModel):
    """A cache point with its time to live."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["default"] = "default"
    ttl: CacheTtl | None = None


CacheSetting = Literal["default"] | CachePoint | None


class Settings(BaseModel):
    """Settings of a model's requests. What is None is left out of the request."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model_id: str = Field(default=DEFAULT_MODEL, min_length=1, description="Model, inference profile or ARN")
    max_tokens: int | None = Field(default=None, ge=1, description="Tokens of one answer")
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, ge=0, le=1)
    stop_sequences: list[str] | None = None
    streaming: bool = Field(default=True, description="ConverseStream; Converse for models that cannot stream")

    guardrail_id: str | None = Field(default=None, description="Id or ARN of a guardrail")
    guardrail_version: str | None = Field(default=None, description='Its version, "DRAFT" or a number')
    guardrail_trace: Literal["enabled", "disabled", "enabled_full"] = "enabled"
    guardrail_stream_processing_mode: Literal["sync", "async"] | None = None
    guardrail_redact_input: bool = Field(default=True, description="Replace the user text that was blocked")
    guardrail_redact_input_message: str = Field(default="[User input redacted.]", min_length=1)
    guardrail_redact_output: bool = Field(default=False, description="Replace the answer that was blocked")
    guardrail_redact_output_message: str = Field(default="[Assistant output redacted.]", min_length=1)
    guardrail_latest_message: bool = Field(default=False, description="Have only the last user turn assessed")

    cache_config: CacheConfig | None = Field(default=None, description="Cache points set in the messages")
    cache_prompt: CacheSetting = Field(default=None, description="A cache point after the system prompt")
    cache_tools: CacheSetting = Field(default=None, description="A cache point after the tools")

    additional_request_fields: dict[str, Any] | None = None
    additional_response_field_paths: list[str] | None = None
    additional_args: dict[str, Any] | None = Field(default=None, description="More arguments of the operation")
    service_tier: Literal["priority", "default", "flex", "reserved"] | None = None

    strict_tools: bool | None = Field(default=None, description="Hold tool inputs to their schemas")
    include_tool_result_status: Literal["auto"] | bool = "auto"
    use_native_token_count: bool = Field(default=False, description="Count tokens with the CountTokens operation")
    context_window_limit: int | None = Field(default=None, ge=1, description="Tokens, in place of the known window")
