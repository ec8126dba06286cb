from __future__ import annotations

from ropewalk.kits.messages.history import *  # noqa: F403 - moved
