"""Typed lifecycle events of agents, dispatched to callbacks."""

from __future__ import annotations

from ropewalk.kits.lifecycle import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    HookCallback,
    HookEvent,
    HookOrder,
    HookProvider,
    MessageAddedEvent,
    ModelStopResponse,
)
from ropewalk_hooks.base import Plugin, hook
from ropewalk_hooks.errors import HookError
from ropewalk_hooks.plugin import HooksPlugin
from ropewalk_hooks.registry import HookRegistry

__all__ = [
    "AfterInvocationEvent",
    "AfterModelCallEvent",
    "AfterToolCallEvent",
    "AfterToolsEvent",
    "AgentInitializedEvent",
    "BeforeInvocationEvent",
    "BeforeModelCallEvent",
    "BeforeToolCallEvent",
    "BeforeToolsEvent",
    "HookCallback",
    "HookError",
    "HookEvent",
    "HookOrder",
    "HookProvider",
    "HookRegistry",
    "HooksPlugin",
    "MessageAddedEvent",
    "ModelStopResponse",
    "Plugin",
    "hook",
]
