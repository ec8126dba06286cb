"""The offloader by name, with options."""

from __future__ import annotations

from typing import final

import pydantic

from ropewalk.kits.sentinels import DEFAULT
from ropewalk_offload.offloader import MAX_RESULT_TOKENS, PREVIEW_TOKENS, ContextOffloader


@final
class OffloadPlugin(ContextOffloader):
    """A `ContextOffloader` with options from `plugins=`, file or environment."""

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `ContextOffloader`.

        Attributes:
            storage: `"memory"`, `"sandbox"`, or the path of a folder.
            evict_after_cycles: 0 for never.
        """

        storage: str | None = None
        max_result_tokens: int = pydantic.Field(default=MAX_RESULT_TOKENS, ge=1)
        preview_tokens: int = pydantic.Field(default=PREVIEW_TOKENS, ge=0)
        include_retrieval_tool: bool = True
        evict_after_cycles: int | None = pydantic.Field(default=None, ge=0)

        @pydantic.model_validator(mode="after")
        def _preview_is_smaller(self) -> OffloadPlugin.Config:
            if self.max_result_tokens <= self.preview_tokens:
                raise ValueError(
                    f"preview_tokens={self.preview_tokens} must be less than max_result_tokens={self.max_result_tokens}"
                )

            return self

    def __init__(self, config: Config | None = None) -> None:
        chosen = config or self.Config()
        evict = chosen.evict_after_cycles
        super().__init__(
            chosen.storage,
            chosen.max_result_tokens,
            chosen.preview_tokens,
            chosen.include_retrieval_tool,
            evict_after_cycles=DEFAULT if evict is None else (evict or None),
        )
