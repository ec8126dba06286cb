"""Counts of tokens: OpenAI's to Converse's."""

from __future__ import annotations

from typing import Any


def usage_of(usage: Any) -> dict[str, int]:
    """The counts of one call.

    In OpenAI's counts the prompt's tokens include those that the provider's cache read or wrote; here each token is
    counted once, so that prices can be put to them.
    """
    details = getattr(usage, "prompt_tokens_details", None)
    read = _count(details, "cached_tokens") or _count(usage, "cache_read_input_tokens")
    written = (
        _count(usage, "cache_creation_input_tokens")
        or _count(details, "cache_creation_tokens")
        or _count(details, "cache_write_tokens")
    )
    prompt, left = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    counts = {
        "inputTokens": max(prompt - read - written, 0),
        "outputTokens": left,
        "totalTokens": _count(usage, "total_tokens") or prompt + left,
    }
    if read:
        counts["cacheReadInputTokens"] = read

    if written:
        counts["cacheWriteInputTokens"] = written

    return counts


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
