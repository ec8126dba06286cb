"""The plugin: turns `litellm:...` into models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ropewalk import hookimpl
from ropewalk.errors import UnknownModelError
from ropewalk_litellm.settings import CacheConfig

if TYPE_CHECKING:
    from ropewalk_litellm.model import LiteLLMModel

_PREFIX: Final = "litellm"


class LiteLLMConfig(BaseModel):
    """Settings of the models that the plugin makes from strings; they mean what they mean to `LiteLLMModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    params: dict[str, Any] = Field(default_factory=dict, description="Parameters of the request: temperature ...")
    stream: bool = Field(default=True, description="Ask for the answer in pieces")
    client_args: dict[str, Any] = Field(default_factory=dict, description="api_key, api_base, timeout ...", repr=False)
    context_window_limit: int | None = Field(default=None, ge=1, description="Tokens, in place of the known window")
    cache_config: CacheConfig | None = Field(default=None, description="Cache points set without the caller's doing")


class LiteLLMPlugin:
    """Provides models of any provider, through LiteLLM.

    Args:
        config: Settings of the models; the defaults when left out.
    """

    name = "litellm"
    Config = LiteLLMConfig

    def __init__(self, config: LiteLLMConfig | None = None) -> None:
        self._config = config or LiteLLMConfig()

    @hookimpl
    def provide_model(self, spec: str | None) -> LiteLLMModel | None:
        """A model for `litellm:<provider>/<model>`.

        Raises:
            UnknownModelError: The string names no model.
        """
        prefix, _, model_id = (spec or "").partition(":")
        if prefix != _PREFIX:
            return None

        if not model_id:
            raise UnknownModelError(
                f"model={spec!r} names no model: say provider and model, as in 'litellm:openai/gpt-4o'"
            )

        from ropewalk_litellm.model import LiteLLMModel

        config = self._config
        return LiteLLMModel(
            model_id,
            params=config.params,
            stream=config.stream,
            client_args=config.client_args,
            context_window_limit=config.context_window_limit,
            cache_config=config.cache_config,
        )
