from __future__ import annotations

from ropewalk.kits.calls.outcomes import *  # noqa: F403 - moved
