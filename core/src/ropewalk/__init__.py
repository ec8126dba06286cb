"""Ropewalk: a plugin-first microkernel for AI agents.

What the kernel brings is imported here. Names that plugins bring (`tool`, `LocalModel`, `Checkpoint` ...) import from
here too: each is resolved on first use, and a missing plugin says what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropewalk.agent import Agent
from ropewalk.errors import (
    AgentClosedError,
    ConcurrencyException,
    ContextWindowOverflowException,
    HistoryError,
    IncompleteStreamError,
    InvalidPromptError,
    MalformedStreamError,
    MaxTokensReachedException,
    MissingPluginError,
    ModelError,
    ModelThrottledException,
    PluginError,
    RopewalkError,
    ToolDefinitionError,
    UnknownModelError,
)
from ropewalk.kits.calls.edits import ContextRequest, HistoryEdit
from ropewalk.kits.calls.invocation import CallOptions, Denied, Invocation
from ropewalk.kits.calls.outcomes import Failure, ModelOutcome, Retry, Stop, ToolsOutcome
from ropewalk.kits.calls.verdicts import Moment, Refuse, Replace, Verdict
from ropewalk.kits.log.records import Record
from ropewalk.kits.metrics import EventLoopMetrics
from ropewalk.kits.result import AgentResult
from ropewalk.kits.state import JSONState
from ropewalk.kits.suspension import Interrupt, ResumeError, Suspend, Suspension
from ropewalk.markers import API_VERSION, hookimpl, hookspec
from ropewalk.model import Model, ModelRequest
from ropewalk.run import current_run
from ropewalk.tools import Tool, ToolBatch, ToolCall, error_result
from ropewalk.types import Message, StreamEvent, ToolResult, ToolSpec, ToolUse, Usage

if TYPE_CHECKING:
    from ropewalk.kits.hooks.plugin_names import *  # noqa: F403 - what a type checker sees of the names of plugins

__all__ = [
    "API_VERSION",
    "Agent",
    "AgentClosedError",
    "AgentResult",
    "CallOptions",
    "ConcurrencyException",
    "ContextRequest",
    "ContextWindowOverflowException",
    "Denied",
    "EventLoopMetrics",
    "Failure",
    "HistoryEdit",
    "HistoryError",
    "IncompleteStreamError",
    "Interrupt",
    "InvalidPromptError",
    "Invocation",
    "JSONState",
    "MalformedStreamError",
    "MaxTokensReachedException",
    "Message",
    "MissingPluginError",
    "Model",
    "ModelError",
    "ModelOutcome",
    "ModelRequest",
    "ModelThrottledException",
    "Moment",
    "PluginError",
    "Record",
    "Refuse",
    "Replace",
    "ResumeError",
    "Retry",
    "RopewalkError",
    "Stop",
    "StreamEvent",
    "Suspend",
    "Suspension",
    "Tool",
    "ToolBatch",
    "ToolCall",
    "ToolDefinitionError",
    "ToolResult",
    "ToolSpec",
    "ToolUse",
    "ToolsOutcome",
    "UnknownModelError",
    "Usage",
    "Verdict",
    "current_run",
    "error_result",
    "hookimpl",
    "hookspec",
]


def __getattr__(name: str) -> Any:
    from ropewalk.kits.hooks.names import resolve  # the table is read only when a plugin's name is wanted

    value = resolve(name)
    globals()[name] = value
    return value
