"""Policies: plugins that whoever runs the process puts over every agent in it, and that no agent can leave out.

They are named in `ROPEWALK_POLICY=name,...` and under `[policy] plugins = [...]` in the administrator's file; both
count. They are read once, at the first use in a process: what changes the environment later changes nothing.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import Any, Final

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.loading import find, load

logger = logging.getLogger("ropewalk.policy")

VARIABLE: Final = "ROPEWALK_POLICY"
ADMIN_FILE: Path = Path("/etc/ropewalk.toml")


def policies() -> dict[str, Any]:
    """The policies of this process by name, loaded.

    Raises:
        PluginError: A policy is not installed, is broken, or is a plugin of another tier. No agent is built then: a
            policy that is missing must not look like one that agrees.
    """
    state = registry()
    if state.policies is None:
        state.policies = {name: _loaded(name, source) for name, source in _named()}

    return state.policies


def policy_digest() -> str:
    """A digest of the policies' names, distributions and versions, for the log; empty when there are none."""
    installed = registry().installed
    lines = [f"{name} {installed[name].distribution} {installed[name].version}" for name in sorted(policies())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else ""


def is_policy(name: str, by: str) -> bool:
    """Whether a name is a policy's, which `by` then cannot switch off or replace; the attempt is logged."""
    if name not in policies():
        return False

    logger.warning("%s tries to switch off or replace the policy %r: it stays in force", by, name)
    return True


def _loaded(name: str, source: str) -> Any:
    plugin = load(find(name, f"{source} names {name!r}, which"))
    tier = getattr(type(plugin), "tier", "normal")
    if tier != "policy":
        raise PluginError(
            f'{source} names {name!r}, a plugin of the tier {tier!r}: a policy\'s class has tier = "policy"'
        )

    return plugin


def _named() -> list[tuple[str, str]]:
    """Names with where they stand, each once."""
    entries = [(name.strip(), VARIABLE) for name in os.environ.get(VARIABLE, "").split(",")]
    entries += [(name, str(ADMIN_FILE)) for name in _from_file()]
    return list(dict(reversed([entry for entry in entries if entry[0]])).items())


def _from_file() -> list[str]:
    if not ADMIN_FILE.exists():
        return []

    import tomllib  # only where there is something to read

    try:
        content = tomllib.loads(ADMIN_FILE.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PluginError(f"the policies in {ADMIN_FILE} cannot be read ({error}): mend the file") from error

    section = content.get("policy", {})
    names = section.get("plugins", []) if isinstance(section, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise PluginError(f'{ADMIN_FILE}: [policy] plugins is {names!r}: write plugins = ["name", ...]')

    return names
