"""What models cost and hold, from the table that comes with LiteLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ropewalk.errors import UnknownModelError
from ropewalk_litellm import library

_RATES: Final = {
    "inputTokens": "input_cost_per_token",
    "outputTokens": "output_cost_per_token",
    "cacheReadInputTokens": "cache_read_input_token_cost",
    "cacheWriteInputTokens": "cache_creation_input_token_cost",
}
_MILLION: Final = 1_000_000


def litellm_cost(model_id: str, usage: Mapping[str, int]) -> float:
    """What a usage costs, in US dollars: the value of the option `prices` of the plugin `limits`.

    The table is that of the installed LiteLLM; what it says of long contexts, batches and tiers is not considered.

    Raises:
        UnknownModelError: The table has no price for the model.
    """
    entry = _priced(model_id)
    entered: float = entry["input_cost_per_token"]
    rates: dict[str, float | None] = {count: entry.get(rate) for count, rate in _RATES.items()}
    return sum((usage.get(count, 0) * (entered if rate is None else rate) for count, rate in rates.items()), 0.0)


def price_of(model_id: str) -> dict[str, float]:
    """The price of a model in US dollars per million tokens, as an entry of the option `prices`.

    Raises:
        UnknownModelError: The table has no price for the model.
    """
    entry = _priced(model_id)
    names = {"input": "inputTokens", "output": "outputTokens"}
    cached = {"cache_read": "cacheReadInputTokens", "cache_write": "cacheWriteInputTokens"}
    rates = {name: entry.get(_RATES[count]) for name, count in {**names, **cached}.items()}
    return {name: rate * _MILLION for name, rate in rates.items() if rate is not None}


def entry_of(model_id: str) -> Mapping[str, Any] | None:
    """What the table says of a model; None before LiteLLM is loaded, or when it is not in there."""
    module = library.loaded()
    return None if module is None else _entry(module, model_id)


def window_of(model_id: str) -> int | None:
    """Tokens that a model reads, as far as the table is loaded and knows it."""
    window = (entry_of(model_id) or {}).get("max_input_tokens")
    return window if isinstance(window, int) and window > 0 else None


def _priced(model_id: str) -> Mapping[str, Any]:
    entry = _entry(library.litellm(), model_id)
    if entry is None or entry.get("input_cost_per_token") is None or entry.get("output_cost_per_token") is None:
        raise UnknownModelError(
            f"LiteLLM's table has no price for the model {model_id!r}: "
            "give one in the option `prices` of plugin 'limits'"
        )

    return entry


def _entry(module: Any, model_id: str) -> Mapping[str, Any] | None:
    """The table names some models with their provider and some without."""
    provider, _, bare = model_id.partition("/")
    for name in (model_id, bare):
        entry: Mapping[str, Any] | None = module.model_cost.get(name) if name else None
        if entry is not None and (name == model_id or _same(entry, provider)):
            return entry

    return None


def _same(entry: Mapping[str, Any], provider: str) -> bool:
    """Whether a bare name is this provider's: other providers sell models of the same name at other prices."""
    told = str(entry.get("litellm_provider") or "")
    return told == provider or told.startswith((f"{provider}_", f"{provider}-"))
