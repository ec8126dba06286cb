"""The plugin: turns `bedrock`, `bedrock:...` and bare model ids into models, and is the default provider."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from ropewalk import hookimpl
from ropewalk_bedrock.model import BedrockModel
from ropewalk_bedrock.settings import Settings

_PREFIX: Final = "bedrock"
# Ids of models and profiles have a dot before any colon (us.anthropic.claude-...-v1:0); words such as gpt-oss have none
# of both. What has a colon and no dot before it is another provider's string.
_BARE_ID: Final = re.compile(r"arn:\S+|[\w-]+(\.[\w-]+)+(:\S*)?|[\w-]+", re.ASCII)
_CLIENT_OPTIONS: Final = frozenset({"region_name", "endpoint_url", "api_key"})


class BedrockConfig(Settings):
    """Options of the plugin, for the models that it makes from strings: the settings, and where to call."""

    region_name: str | None = Field(default=None, description="In front of the environment's region")
    endpoint_url: str | None = Field(default=None, description="In front of the region's endpoint")
    api_key: str | None = Field(default=None, repr=False, description="A Bedrock API key")


class BedrockPlugin:
    """Provides models of Amazon Bedrock.

    Args:
        config: Settings of the models; the defaults when left out.
    """

    name = "bedrock"
    Config = BedrockConfig

    def __init__(self, config: BedrockConfig | None = None) -> None:
        self._config = config or BedrockConfig()

    @hookimpl
    def provide_model(self, spec: str | None) -> BedrockModel | None:
        """A model for None or `bedrock` (the default one), `bedrock:<id>`, or a bare id."""
        if spec is None:
            return self._model("")

        prefix, _, rest = spec.partition(":")
        if prefix == _PREFIX:
            return self._model(rest)

        return self._model(spec) if _BARE_ID.fullmatch(spec) else None

    def _model(self, model_id: str) -> BedrockModel:
        options = {name: getattr(self._config, name) for name in self._config.model_fields_set | _CLIENT_OPTIONS}
        if model_id:
            options["model_id"] = model_id

        return BedrockModel(**options)
