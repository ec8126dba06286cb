"""The two markers of the hook API, and its version."""

from __future__ import annotations

from typing import Final

import pluggy

PROJECT: Final = "ropewalk"
API_VERSION: Final = 1
"""Version of the hook API; it moves when an existing implementation would have to change."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
