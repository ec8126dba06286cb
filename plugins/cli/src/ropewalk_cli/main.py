"""The program `ropewalk` and its table of commands."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Any

import click

from ropewalk_cli.exits import Exit, report

BUILT_IN = {
    "run": "ropewalk_cli.run",
    "chat": "ropewalk_cli.chat",
    "resume": "ropewalk_cli.resuming",
    "plugins": "ropewalk_cli.plugins",
}
"""Commands of the program itself; these need no other plugin to be imported."""


def _note_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta["ropewalk.debug"] = True


def debug_option(command: Any) -> Any:
    """Adds `--debug`, with the same meaning wherever it stands on the command line."""
    add = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_note_debug, help="Show the traceback of an error."
    )
    return add(command)


class Program(click.Group):
    """A group whose commands come from plugins, and whose errors are readable."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The program's own commands first, then those of plugins."""
        return [*BUILT_IN, *sorted(self._from_plugins(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, looked up in plugins only when it is not the program's own."""
        if cmd_name in BUILT_IN:
            from importlib import import_module

            own: click.Command = getattr(import_module(BUILT_IN[cmd_name]), cmd_name)
            return own

        return self._from_plugins(ctx).get(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; an error becomes a message and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise  # click's own business
        except KeyboardInterrupt:
            click.echo("\nCancelled", err=True)
            ctx.exit(Exit.CANCELLED)
        except Exception as error:
            if ctx.find_root().meta.get("ropewalk.debug"):
                raise

            report(error)
            ctx.exit(Exit.ERROR)

    def _from_plugins(self, ctx: click.Context) -> dict[str, click.Command]:
        commands = ctx.find_root().meta.get("ropewalk.commands")
        if commands is None:
            from ropewalk_cli.commands import commands_of_plugins

            commands = ctx.find_root().meta["ropewalk.commands"] = commands_of_plugins(BUILT_IN)

        return dict(commands)


def _show_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"ropewalk {version('ropewalk-core')} (Python {platform.python_version()})")
        context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
@debug_option
def program() -> None:
    """Runs Ropewalk agents and shows what they are made of."""


def main() -> None:
    """The entry point of the console script."""
    program(prog_name="ropewalk")


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[func-returns-value]
