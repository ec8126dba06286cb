"""Commands that look at sessions: `sessions`, `trace`, `diff` and `fork`."""

from __future__ import annotations

from ropewalk_views.plugin import ViewsPlugin

__all__ = ["ViewsPlugin"]
