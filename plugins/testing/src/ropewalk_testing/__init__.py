"""Scripted models with every kind of fault, and checks, for tests of agents and plugins."""

from __future__ import annotations

from ropewalk_testing.errors import ScriptError, ScriptExhausted
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.plugin import TestingPlugin
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.turns import Turn, reasoning, text, turn, use

__all__ = [
    "ScriptError",
    "ScriptExhausted",
    "ScriptedModel",
    "TestingPlugin",
    "Turn",
    "assert_valid_history",
    "reasoning",
    "text",
    "turn",
    "use",
]
