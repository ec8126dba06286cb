"""Runs an agent's tools: concurrently (the default) or one after the other."""

from __future__ import annotations

from ropewalk_executor.plugin import ConcurrentToolExecutor, ExecutorPlugin, SequentialToolExecutor

__all__ = ["ConcurrentToolExecutor", "ExecutorPlugin", "SequentialToolExecutor"]
