"""What `context_manager="auto"` stands for."""

from __future__ import annotations

from typing import Any, Final, final

import pydantic

from ropewalk import hookimpl

PRESETS: Final = ("auto", "agentic")


@final
class ContextAutoPlugin:
    """Puts a summarizing conversation manager and an offloader together; it does nothing by itself."""

    name = "context-auto"

    class Config(pydantic.BaseModel):
        """Options of the plugin: the values of the preset.

        Attributes:
            summary_ratio: The share of the messages that becomes a summary.
            compression_threshold: The share of the model's window from which on a summary is made.
            max_result_tokens: Tool results with more tokens are offloaded.
            preview_tokens: Tokens of an offloaded result that stay; less than `max_result_tokens`.
        """

        summary_ratio: float = pydantic.Field(default=0.3, ge=0.1, le=0.8)
        compression_threshold: float = pydantic.Field(default=0.85, gt=0, le=1)
        max_result_tokens: int = pydantic.Field(default=1_500, ge=1)
        preview_tokens: int = pydantic.Field(default=750, ge=0)

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or self.Config()

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> list[tuple[str, dict[str, Any]]] | None:
        """Takes `context_manager`. Both plugins give way to what the caller has given in their place.

        Raises:
            ValueError: There is no such preset.
        """
        if value == "agentic":
            return None  # another plugin's

        if value != "auto":
            raise ValueError(
                f"{parameter}={value!r:.200}: there is no such preset: give {' or '.join(map(repr, PRESETS))}, or "
                "leave it out and give conversation_manager=... and plugins=[...]"
            )

        chosen = self._config
        return [
            (
                "summarize",
                {
                    "summary_ratio": chosen.summary_ratio,
                    "compression_threshold": chosen.compression_threshold,
                    "gives_way": True,
                },
            ),
            ("offload", {"max_result_tokens": chosen.max_result_tokens, "preview_tokens": chosen.preview_tokens}),
        ]
