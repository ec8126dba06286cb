"""Models of any provider for Ropewalk agents, through LiteLLM."""

from __future__ import annotations

from ropewalk_litellm.library import release_clients
from ropewalk_litellm.model import LiteLLMModel
from ropewalk_litellm.plugin import LiteLLMPlugin
from ropewalk_litellm.prices import litellm_cost, price_of
from ropewalk_litellm.settings import CacheConfig

__all__ = ["CacheConfig", "LiteLLMModel", "LiteLLMPlugin", "litellm_cost", "price_of", "release_clients"]
