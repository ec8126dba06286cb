from __future__ import annotations

from ropewalk.kits.calls.verdicts import *  # noqa: F403 - moved
