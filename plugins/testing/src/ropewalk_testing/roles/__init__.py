"""What whoever plays a role keeps, as tests to inherit: tools, executors, guards, managers, strategies, storages."""

from __future__ import annotations

from ropewalk_testing.roles.context import ContextConformance
from ropewalk_testing.roles.executors import ExecutorConformance
from ropewalk_testing.roles.guards import GuardConformance
from ropewalk_testing.roles.providers import ToolProviderConformance
from ropewalk_testing.roles.retrying import RetryConformance
from ropewalk_testing.roles.storage import StorageConformance
from ropewalk_testing.roles.tools import ToolConformance

__all__ = [
    "ContextConformance",
    "ExecutorConformance",
    "GuardConformance",
    "RetryConformance",
    "StorageConformance",
    "ToolConformance",
    "ToolProviderConformance",
]
