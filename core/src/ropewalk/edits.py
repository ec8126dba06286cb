from __future__ import annotations

from ropewalk.kits.calls.edits import *  # noqa: F403 - moved
