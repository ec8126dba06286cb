"""The program `ropewalk` and its table of commands."""

from __future__ import annotations

import logging
import os
import platform
import sys
import warnings
from importlib.metadata import version
from typing import Any, NoReturn

import click

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.refusals import did_you_mean
from ropewalk.kits.terminal import harmless
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
        try:
            return [*BUILT_IN, *sorted(self._from_plugins(ctx))]
        except PluginError as problem:
            from ropewalk_cli.commands import warn

            warn(f"the commands of plugins are left out: {problem}")
            return list(BUILT_IN)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, looked up in plugins only when it is not the program's own."""
        if cmd_name in BUILT_IN:
            from importlib import import_module

            own: click.Command = getattr(import_module(BUILT_IN[cmd_name]), cmd_name)
            return own

        return self._from_plugins(ctx).get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command; one that there is not is wrong usage, with what is nearest."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            _no_such_command(ctx, name, self.list_commands(ctx))

        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; an error becomes a message and an exit code."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False

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

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program; what fails before there is a command, such as the writing of help, is told as well."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if "--debug" in (args[0] if args and args[0] is not None else sys.argv):
                raise

            report(error)
            sys.exit(Exit.ERROR)

    def _from_plugins(self, ctx: click.Context) -> dict[str, click.Command]:
        commands = ctx.find_root().meta.get("ropewalk.commands")
        if commands is None:
            from ropewalk_cli.commands import commands_of_plugins

            commands = ctx.find_root().meta["ropewalk.commands"] = commands_of_plugins(BUILT_IN)

        return dict(commands)


def _no_such_command(ctx: click.Context, name: str, known: list[str]) -> NoReturn:
    ctx.fail(f"No such command {name!r}: {did_you_mean(name, known)}the commands are {', '.join(known)}")


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


class Told(logging.Handler):
    """Shows what is logged, when nobody else listens, to somebody who does not read tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line to standard error."""
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage() if error is None else f"{record.getMessage()} ({type(error).__name__}: {error})"
        click.secho(f"Warning: {harmless(text)}", fg="yellow", err=True)


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
    """Shows a warning to somebody who does not read code; one that is about code keeps its place."""
    place = "" if issubclass(category, RuntimeWarning) else f" [{filename}:{lineno}]"
    click.secho(f"Warning: {harmless(str(message))}{place}", fg="yellow", err=True)


def main() -> None:
    """The entry point of the console script."""
    if "--debug" not in sys.argv:
        warnings.showwarning = _warn
        logging.lastResort = Told(logging.WARNING)

    program(prog_name="ropewalk")


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[func-returns-value]
