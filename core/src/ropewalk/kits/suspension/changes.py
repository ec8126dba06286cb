"""What must not have changed between a pause and its resume."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ropewalk.kits.suspension.errors import CheckpointException, ResumeError
from ropewalk.kits.suspension.state import Suspension


def refuse_changes(
    pause: Suspension, length: int, digest: str, tools: Collection[str], plugins: Mapping[str, str]
) -> None:
    """Refuses to go on with an agent that is not as it was.

    Args:
        pause: Where the run stopped.
        length: Messages in the history.
        digest: The history's chained hash.
        tools: The agent's tools.
        plugins: The plugins that shape its runs, with their versions.

    Raises:
        ResumeError: Something differs; CheckpointException for a checkpoint.
    """
    problem = _difference(pause, length, digest, tools, plugins)
    if problem:
        kind = CheckpointException if pause.kind == "checkpoint" else ResumeError
        raise kind(f"the run cannot go on: {problem}")


def _difference(
    pause: Suspension, length: int, digest: str, tools: Collection[str], plugins: Mapping[str, str]
) -> str | None:
    if (length, digest) != (pause.length, pause.digest):
        return (
            f"the history is not the one it was paused with ({length} messages, then {pause.length}, or other ones): "
            "restore agent.messages, or start anew with a prompt"
        )

    gone = [name for name in pause.tools if name not in tools]
    if gone:
        return f"the agent has no tool {gone[0]!r} any more, which waits to be run: register it again"

    for name, version in pause.plugins.items():
        if name not in plugins:
            return f"the plugin {name!r} took part in it and is not active: add it to plugins=[...]"

        if _series(plugins[name]) != _series(version):
            return f"the plugin {name!r} is of version {plugins[name]}, then {version}: install that one again"

    return None


def _series(version: str) -> tuple[str, ...]:
    """The part of a version within which releases understand each other's state: 1 of 1.4.2, 0.3 of 0.3.1."""
    parts = tuple(version.split("."))
    return parts[:1] if parts[0] != "0" else parts[:2]
