"""Scripted models with every kind of fault, and checks, for tests of agents and plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropewalk_testing.errors import ScriptError, ScriptExhausted
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.memory_store import MemoryLogStore
from ropewalk_testing.plugin import TestingPlugin
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.turns import Turn, reasoning, text, turn, use

if TYPE_CHECKING:
    from ropewalk_testing.contract import PluginContract
    from ropewalk_testing.model_conformance import ModelConformance
    from ropewalk_testing.roles import (
        ContextConformance,
        ExecutorConformance,
        GuardConformance,
        RetryConformance,
        StorageConformance,
        ToolConformance,
        ToolProviderConformance,
    )
    from ropewalk_testing.store_conformance import StoreConformance

__all__ = [
    "ContextConformance",
    "ExecutorConformance",
    "GuardConformance",
    "MemoryLogStore",
    "ModelConformance",
    "PluginContract",
    "RetryConformance",
    "ScriptError",
    "ScriptExhausted",
    "ScriptedModel",
    "StorageConformance",
    "StoreConformance",
    "TestingPlugin",
    "ToolConformance",
    "ToolProviderConformance",
    "Turn",
    "assert_valid_history",
    "reasoning",
    "text",
    "turn",
    "use",
]


_ROLES = (
    "ContextConformance",
    "ExecutorConformance",
    "GuardConformance",
    "RetryConformance",
    "StorageConformance",
    "ToolConformance",
    "ToolProviderConformance",
)


def __getattr__(name: str) -> Any:
    if name in _ROLES:
        from ropewalk_testing import roles

        return getattr(roles, name)
    if name == "PluginContract":  # the names that need pytest
        from ropewalk_testing.contract import PluginContract

        return PluginContract
    if name == "ModelConformance":
        from ropewalk_testing.model_conformance import ModelConformance

        return ModelConformance
    if name == "StoreConformance":
        from ropewalk_testing.store_conformance import StoreConformance

        return StoreConformance

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
