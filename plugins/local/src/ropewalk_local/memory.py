"""Estimates what a model will take, and looks at what the machine has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ropewalk_local.errors import NotEnoughMemoryError

if TYPE_CHECKING:
    from ropewalk_local.gguf import Header

# Measured with xllamacpp 2026.10: 1.1 GB of Q4_K_M weights are repacked to another 0.6 GB, buffers take 0.1 GB.
_REPACKED: Final = 0.55
_BUFFERS: Final = 150_000_000
_CGROUPS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def needed_bytes(header: Header, context: int) -> int:
    """Memory that the model takes with `context` tokens in all its slots together."""
    per_token = header.kv_bytes_per_token() or 0
    return int(header.size * (1 + _REPACKED)) + per_token * context + _BUFFERS


def available_bytes() -> int | None:
    """Memory that can be had without swapping, within the limits of a container; None when the system does not tell."""
    if not sys.platform.startswith("linux"):
        return None

    found = [value for value in (_system(), *(_cgroup(*names) for names in _CGROUPS)) if value is not None]
    return min(found, default=None)


def _system() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None

    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024

    return None


def _cgroup(limit: str, usage: str) -> int | None:
    try:
        return int(Path(limit).read_text(encoding="ascii")) - int(Path(usage).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such group, or "max"
        return None


def check_memory(header: Header, context: int) -> None:
    """Refuses a model that does not fit, before the system starts to swap or to kill.

    Raises:
        NotEnoughMemoryError: It does not fit.
    """
    available = available_bytes()
    needed = needed_bytes(header, context)
    if available is not None and needed > available:
        raise NotEnoughMemoryError(header.path, needed, available)
