"""The plugin: it brings commands and takes part in no run."""

from __future__ import annotations

from typing import Any, final

from ropewalk import hookimpl


@final
class ViewsPlugin:
    """Brings `ropewalk sessions`, `trace`, `diff` and `fork`, for sessions in any store."""

    name = "views"

    @hookimpl
    def provide_commands(self) -> list[Any]:
        """The commands; click is imported only when somebody asks for them."""
        from ropewalk_views.diff import diff
        from ropewalk_views.fork import fork
        from ropewalk_views.sessions import sessions
        from ropewalk_views.trace import trace

        return [sessions, trace, diff, fork]
