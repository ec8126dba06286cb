"""Budgets: for one call of an agent, or for many agents and calls together."""

from __future__ import annotations

from ropewalk_limits.budget import Budget, Spent
from ropewalk_limits.limits import Limits
from ropewalk_limits.plugin import LimitsPlugin
from ropewalk_limits.prices import Price

__all__ = ["Budget", "Limits", "LimitsPlugin", "Price", "Spent"]
