"""Which plugin stands behind which parameter: data for error messages, read only when something is missing.

The owner of a parameter is found through the entry-point group `ropewalk.parameters`. This table says what to install
when there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PARAMETERS: Final[Mapping[str, str]] = {
    # parameters and methods of Agent
    "add_hook": "ropewalk-hooks",
    "as_tool": "ropewalk-subagents",
    "callback_handler": "ropewalk-console",
    "checkpointing": "ropewalk-checkpoint",
    "concurrent_invocation_mode": "ropewalk-concurrency",
    "context_manager": "ropewalk-context-auto",
    "conversation_manager": "ropewalk-window",
    "hooks": "ropewalk-hooks",
    "idempotency_token": "ropewalk-concurrency",
    "interventions": "ropewalk-interventions",
    "limits": "ropewalk-limits",
    "load_tools_from_directory": "ropewalk-tools",
    "memory_manager": "ropewalk-memory",
    "retry_strategy": "ropewalk-retry",
    "sandbox": "ropewalk-sandbox-local",
    "session_manager": "ropewalk-session-file",
    "structured_output": "ropewalk-structured",
    "structured_output_async": "ropewalk-structured",
    "structured_output_model": "ropewalk-structured",
    "structured_output_prompt": "ropewalk-structured",
    "tool_executor": "ropewalk-executor",
    "tools": "ropewalk-tools",
    "trace_attributes": "ropewalk-telemetry",
    # providers of model strings
    "model.bedrock": "ropewalk-bedrock",
    "model.litellm": "ropewalk-litellm",
    "model.local": "ropewalk-local",
    "model.testing": "ropewalk-testing",
    # stores of sessions
    "session.file": "ropewalk-session-file",
    "session.postgres": "ropewalk-session-sql",
    "session.postgresql": "ropewalk-session-sql",
    "session.s3": "ropewalk-session-s3",
    "session.sqlite": "ropewalk-session-sql",
    # providers of sandboxes
    "sandbox.bwrap": "ropewalk-sandbox-bwrap",
    "sandbox.docker": "ropewalk-sandbox-docker",
    "sandbox.local": "ropewalk-sandbox-local",
    "sandbox.monty": "ropewalk-sandbox-monty",
    "sandbox.ssh": "ropewalk-sandbox-ssh",
}
"""Parameter or method of Agent, or `model.<prefix>`, `session.<scheme>` or `sandbox.<prefix>`, to its distribution."""

PARAMETER_VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("context_manager", "agentic"): "ropewalk-context-agentic",
}
"""(Parameter, value) to a distribution, where one value has an owner of its own."""

SWITCHED_OFF_BY_NONE: Final[Mapping[str, str]] = {"callback_handler": "console", "retry_strategy": "retry"}
"""Parameters whose value None switches a plugin off, to the plugin's name."""

REQUIRED_HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "callback_handler": ("on_delta", "on_event"),
    "concurrent_invocation_mode": ("admit",),
    "conversation_manager": ("manage_context",),
    "interventions": ("intervene",),
    "retry_strategy": ("decide_retry",),
    "session_manager": ("read_records", "write_records"),
    "tool_executor": ("execute_tools",),
}
"""Parameters whose value may be any plugin that implements one of these hooks, the ones that the parameter is about."""

BUNDLED: Final = frozenset({
    "checkpoint", "cli", "concurrency", "console", "context-agentic", "context-auto", "executor", "hooks",
    "interventions", "limits", "offload", "retry", "sandbox-local", "session-file", "structured", "subagents",
    "summarize", "tools", "views", "window",
})  # fmt: skip
"""Names of the plugins that `pip install ropewalk` brings."""

EXTRAS: Final = frozenset({
    "bedrock", "fallback", "hook-trace", "litellm", "local", "mcp", "memory", "rate-limit", "sandbox-bwrap",
    "sandbox-docker", "sandbox-monty", "sandbox-ssh", "session-s3", "session-sql", "telemetry", "testing", "toolbox",
})  # fmt: skip
"""Names of the plugins of this project that are installed one by one."""

KNOWN_PLUGINS: Final[Mapping[str, str]] = {name: f"ropewalk-{name}" for name in sorted(BUNDLED | EXTRAS)}
"""Every plugin of this project by name, with its distribution."""


def distribution_of(parameter: str, value: Any = None) -> str | None:
    """The distribution that brings the owner of a parameter, or None when no known one does."""
    chosen = PARAMETER_VALUES.get((parameter, value)) if isinstance(value, str) else None
    return chosen or PARAMETERS.get(parameter)
