"""The program's own commands, brought the way every plugin brings them."""

from __future__ import annotations

from typing import Any

from ropewalk import hookimpl


class CliPlugin:
    """Brings `ropewalk run`, `ropewalk chat`, `ropewalk resume` and `ropewalk plugins`."""

    name = "cli"

    @hookimpl
    def provide_commands(self) -> list[Any]:
        """The commands; click is imported only when somebody asks for them."""
        from ropewalk_cli.chat import chat
        from ropewalk_cli.plugins import plugins
        from ropewalk_cli.resuming import resume
        from ropewalk_cli.run import run

        return [run, chat, resume, plugins]
