"""What models cost: a table, or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pydantic

_MILLION: Final = 1_000_000
ANY_MODEL: Final = "*"


class Price(pydantic.BaseModel):
    """The price of a model, per million tokens.

    Attributes:
        input: Tokens read.
        output: Tokens written.
        cache_read: Tokens read from the provider's cache; as `input` when left out.
        cache_write: Tokens written to it; as `input` when left out.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    input: float = pydantic.Field(ge=0, allow_inf_nan=False)
    output: float = pydantic.Field(ge=0, allow_inf_nan=False)
    cache_read: float | None = pydantic.Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = pydantic.Field(default=None, ge=0, allow_inf_nan=False)

    def of(self, usage: Mapping[str, int]) -> float:
        """What this usage costs."""
        rates = {
            "inputTokens": self.input,
            "outputTokens": self.output,
            "cacheReadInputTokens": self.input if self.cache_read is None else self.cache_read,
            "cacheWriteInputTokens": self.input if self.cache_write is None else self.cache_write,
        }
        return sum(usage.get(key, 0) * rate for key, rate in rates.items()) / _MILLION


Prices: TypeAlias = dict[str, Price] | Callable[[str, Mapping[str, int]], float]
"""By model id, with `"*"` for all others; or a function of model id and usage that tells the cost."""


def model_id_of(model: Any) -> str:
    """The id under which a model stands in the table."""
    config = getattr(model, "config", None)
    known = getattr(model, "model_id", None) or (config.get("model_id") if isinstance(config, Mapping) else None)
    return str(known or type(model).__name__)


def check_price(prices: Prices, model_id: str) -> None:
    """Refuses to limit the cost of a model whose price is not known.

    Raises:
        ValueError: The table has neither the model nor `"*"`.
    """
    if not callable(prices) and model_id not in prices and ANY_MODEL not in prices:
        raise ValueError(
            f"the cost is limited and the prices of plugin 'limits' have no model {model_id!r}: add it, or "
            f'"{ANY_MODEL}" for all others'
        )


def cost_of(prices: Prices, model_id: str, usage: Mapping[str, int]) -> float:
    """What this usage of a model costs; nothing if the price is not known.

    Raises:
        ValueError: The function of the prices answered something else than a number from 0 on.
    """
    if not callable(prices):
        price = prices.get(model_id) or prices.get(ANY_MODEL)
        return 0.0 if price is None else price.of(usage)

    cost = prices(model_id, usage)
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not cost >= 0:
        raise ValueError(f"the prices of plugin 'limits' say {cost!r} for model {model_id!r}: return a number")

    return float(cost)
