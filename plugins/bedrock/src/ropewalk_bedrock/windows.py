"""What is known of models by their ids: windows, and what their requests may hold."""

from __future__ import annotations

import re
from typing import Final

# Published by the models' makers; patterns are searched in the id, the first that matches counts. A name that ends in
# the family alone stands for all of it.
_WINDOWS: Final[tuple[tuple[str, int], ...]] = (
    (r"anthropic\.claude-v2:1", 200_000),
    (r"anthropic\.claude-(v2|instant)", 100_000),
    (r"anthropic\.claude", 200_000),
    (r"amazon\.nova-premier", 1_000_000),
    (r"amazon\.nova-(pro|lite)", 300_000),
    (r"amazon\.nova-micro", 128_000),
    (r"amazon\.nova-2-lite", 1_000_000),
    (r"amazon\.titan-text-premier", 32_000),
    (r"amazon\.titan-text-express", 8_000),
    (r"amazon\.titan-text-lite", 4_000),
    (r"meta\.llama3-[123]-", 128_000),
    (r"meta\.llama3-", 8_192),
    (r"mistral\.mistral-large-2407", 128_000),
    (r"mistral\.(mistral|mixtral)", 32_000),
    (r"mistral\.pixtral", 128_000),
    (r"cohere\.command-r", 128_000),
    (r"ai21\.jamba-1-5", 256_000),
    (r"deepseek\.r1", 128_000),
    (r"openai\.gpt-oss", 128_000),
)
_COMPILED: Final = tuple((re.compile(pattern), window) for pattern, window in _WINDOWS)
_CACHING: Final = re.compile(r"anthropic\.claude|amazon\.nova")
_STATUS: Final = re.compile(r"anthropic\.claude|amazon\.nova")


def context_window(model_id: str) -> int | None:
    """Tokens of the model's window, or None when its id tells nothing (application profiles, imported models)."""
    return next((window for pattern, window in _COMPILED if pattern.search(model_id)), None)


def caches_prompts(model_id: str) -> bool:
    """Whether the model takes cache points in its messages, as far as the id tells."""
    return _CACHING.search(model_id) is not None


def takes_result_status(model_id: str) -> bool:
    """Whether the model takes the `status` of tool results: the Converse reference names Claude and Nova."""
    return _STATUS.search(model_id) is not None


def needs_signatures(model_id: str) -> bool:
    """Whether the model refuses thinking that it has not signed, and a turn that ends in thinking: Claude does.

    Such turns come from answers that were cut while the model thought, and from other models. An id that names no model
    may be Claude's.
    """
    return "anthropic.claude" in model_id or "application-inference-profile/" in model_id


def takes_reasoning(model_id: str) -> bool:
    """Whether earlier thinking may be sent back to the model."""
    return "deepseek" not in model_id
