"""The hook `provide_commands`."""

from __future__ import annotations

import click

from ropewalk import hookimpl
from ropewalk.kits.hooks import Hooks


class Hello:
    """Brings `ropewalk hello`."""

    name = "hello"

    @hookimpl
    def provide_commands(self):
        return [click.Command("hello", callback=lambda: click.echo("Hello."))]


# What the program does for every installed plugin:
[command] = Hooks.of([Hello()]).provide_commands()
assert command.name == "hello"
