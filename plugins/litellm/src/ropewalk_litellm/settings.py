"""What can be set on a model, checked when it is set."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

_OURS: Final = frozenset({"messages", "model", "stream", "tools"})


class CacheConfig(BaseModel):
    """Where cache points are set without the caller's doing.

    Attributes:
        strategy: `"auto"` sets them after the tools, the system prompt and the last user turn.
        ttl: How long the provider keeps them; the provider's default when None.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Literal["auto"] = "auto"
    ttl: Literal["5m", "1h"] | None = None


class Settings(BaseModel):
    """Settings of a model's requests."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model_id: str = Field(min_length=1, description="LiteLLM's name of the model, provider first: openai/gpt-4o")
    params: dict[str, Any] = Field(default_factory=dict, description="Parameters of the request: temperature ...")
    stream: bool = Field(default=True, description="Ask for the answer in pieces")
    client_args: dict[str, Any] = Field(default_factory=dict, description="api_key, api_base, timeout ...", repr=False)
    context_window_limit: int | None = Field(default=None, ge=1, description="Tokens, in place of the known window")
    cache_config: CacheConfig | None = Field(default=None, description="Cache points set without the caller's doing")

    @field_validator("params", "client_args")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(_OURS & value.keys())
        if taken:
            raise ValueError(
                f"{', '.join(taken)} cannot be given here: the agent fills it (model_id= and stream= set theirs)"
            )

        return dict(value)

    @property
    def cache_point(self) -> dict[str, Any] | None:
        """The cache point that is set without the caller's doing."""
        return None if self.cache_config is None else {"ttl": self.cache_config.ttl}
