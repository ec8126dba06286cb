"""Several models in order: when one fails, the next one answers."""

from __future__ import annotations

from ropewalk_fallback.model import FallbackModel
from ropewalk_fallback.plugin import FallbackPlugin

__all__ = ["FallbackModel", "FallbackPlugin"]
