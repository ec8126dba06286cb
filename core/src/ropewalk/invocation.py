from __future__ import annotations

from ropewalk.kits.calls.invocation import *  # noqa: F403 - moved
