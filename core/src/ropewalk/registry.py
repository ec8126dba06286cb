from __future__ import annotations

from ropewalk.kits.tool_registry import *  # noqa: F403 - moved
from ropewalk.tool_entries import *  # noqa
