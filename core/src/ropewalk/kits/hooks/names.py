"""Public names that plugins bring and that import from `ropewalk`; each is resolved on its first use."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any, Final

from ropewalk.errors import MissingPluginError, PluginError

_BY_PLUGIN: Final[Mapping[str, str]] = {
    "bedrock": "BedrockModel",
    "checkpoint": "Checkpoint CheckpointException",
    "concurrency": "ConcurrentInvocationMode IdempotencyAbortedError",
    "console": "CompositeCallbackHandler PrintingCallbackHandler null_callback_handler",
    "executor": "ConcurrentToolExecutor SequentialToolExecutor",
    "hooks": (
        "AfterInvocationEvent AfterModelCallEvent AfterToolCallEvent AfterToolsEvent AgentInitializedEvent "
        "BeforeInvocationEvent BeforeModelCallEvent BeforeToolCallEvent BeforeToolsEvent HookCallback HookEvent "
        "HookOrder HookProvider HookRegistry MessageAddedEvent ModelStopResponse Plugin hook"
    ),
    "interventions": "Confirm Deny Guide HumanInTheLoop InterventionHandler Proceed Transform",
    "limits": "Budget Limits",
    "litellm": "LiteLLMModel",
    "local": "LocalModel",
    "mcp": "MCPClient",
    "memory": "MemoryManager MemoryManagerConfig",
    "offload": "ContextOffloader",
    "retry": "ModelRetryStrategy",
    "sandbox-docker": "DockerSandbox",
    "sandbox-local": "NotASandboxLocalEnvironment",
    "sandbox-ssh": "SshSandbox",
    "session-file": "FileSessionManager SessionManager",
    "session-s3": "S3SessionManager",
    "session-sql": "SQLSessionManager",
    "structured": "StructuredOutputException",
    "summarize": "SummarizingConversationManager",
    "tools": "ToolContext ToolProvider tool",
    "window": "ConversationManager NullConversationManager SlidingWindowConversationManager",
}

NAMES: Final[Mapping[str, tuple[str, str]]] = {
    name: (f"ropewalk_{plugin.replace('-', '_')}", f"ropewalk-{plugin}")
    for plugin, names in _BY_PLUGIN.items()
    for name in names.split()
}
"""Public name to (module, distribution)."""


def resolve(name: str) -> Any:
    """Finds the object behind a public name of a plugin.

    Args:
        name: A name such as `"tool"`.

    Raises:
        AttributeError: No plugin brings that name.
        MissingPluginError: The plugin that brings it is not installed.
        PluginError: The installed version of the plugin does not have it.
    """
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1)
        raise AttributeError(
            f"module 'ropewalk' has no attribute {name!r}" + (f": did you mean {near[0]}?" if near else "")
        )

    module_name, distribution = NAMES[name]
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:  # the plugin is there, and something that it needs is not
            raise

        raise MissingPluginError(f"ropewalk.{name}", distribution) from None

    try:
        return getattr(module, name)
    except AttributeError:
        raise PluginError(
            f"the installed {distribution} has no {name}: pip install --upgrade ropewalk-core {distribution}"
        ) from None
