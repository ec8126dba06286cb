"""The plugin: turns `local` and `local:...` into models, and brings the `models` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ropewalk import hookimpl

if TYPE_CHECKING:
    from ropewalk_local.model import LocalModel

_PREFIX: Final = "local"


class LocalConfig(BaseModel):
    """Settings of the models that the plugin makes from strings; they mean what they mean to `LocalModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_ctx: int = Field(default=8192, ge=1, description="Tokens of context of one conversation")
    threads: int = Field(default=1, ge=1, description="Threads that compute")
    max_tokens: int = Field(default=1024, ge=1, description="Tokens of one answer")
    temperature: float = Field(default=0.0, ge=0, description="0 always takes the likeliest token")
    seed: int | None = Field(default=None, description="Seed for temperatures above 0")
    parallel: int = Field(default=2, ge=1, description="Conversations that are computed at once")
    check_memory: bool = Field(default=True, description="Refuse to load what does not fit into the memory")


class LocalPlugin:
    """Provides models that run in this process.

    Args:
        config: Settings of the models; the defaults when left out.
    """

    name = "local"
    Config = LocalConfig

    def __init__(self, config: LocalConfig | None = None) -> None:
        self._config = config or LocalConfig()

    @hookimpl
    def provide_model(self, spec: str | None) -> LocalModel | None:
        """A model for `local` (the default one) or `local:<name or path>`."""
        prefix, _, model_id = (spec or "").partition(":")
        if prefix != _PREFIX:
            return None

        from ropewalk_local.catalog import DEFAULT_MODEL
        from ropewalk_local.model import LocalModel

        return LocalModel(model_id or DEFAULT_MODEL, **self._config.model_dump())

    @hookimpl
    def provide_commands(self) -> list[Any]:
        """The command `models`."""
        from ropewalk_local.commands import models  # click is needed by the CLI only

        return [models]
