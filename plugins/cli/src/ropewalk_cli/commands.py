"""Commands that plugins bring."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import click

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.loading import load_or_skip
from ropewalk.kits.hooks.options import check_file

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

logger = logging.getLogger("ropewalk.cli")


def commands_of_plugins(taken: Container[str]) -> dict[str, click.Command]:
    """The commands of all installed plugins, on demand or not, by name.

    A plugin that cannot be used is passed over with a warning: the program must still run, to show what is wrong.

    Args:
        taken: Names of the program's own commands.

    Raises:
        PluginError: The file of options is wrong, so that no plugin can be made.
    """
    check_file()
    commands: dict[str, click.Command] = {}
    for plugin in _loaded():
        for command in _commands_of(plugin):
            if command.name in taken or command.name in commands:
                warn(f"the command {command.name!r} of the plugin {plugin.name!r} is left out: its name is taken")
            elif command.name:
                commands[command.name] = command

    return commands


def _loaded() -> Iterator[Any]:
    for name, installed in registry().installed.items():
        if name == "cli":
            continue  # its commands are the program's own

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # how a broken plugin is announced
                plugin = load_or_skip(installed)
        except (PluginError, RuntimeWarning) as problem:
            warn(str(problem))
        else:
            if plugin is not None:
                yield plugin


def _commands_of(plugin: Any) -> list[click.Command]:
    try:
        found = list(Hooks.of([], [plugin]).provide_commands())
    except (Exception, SystemExit) as problem:
        logger.debug("provide_commands of %s failed", plugin.name, exc_info=True)
        warn(f"the commands of the plugin {plugin.name!r} are left out: {type(problem).__name__}: {problem}")
        return []

    for each in found:
        if not isinstance(each, click.Command):
            warn(f"a command of the plugin {plugin.name!r} is left out: {each!r:.60} is no click.Command")

    return [each for each in found if isinstance(each, click.Command)]


def warn(text: str) -> None:
    """Says what is wrong on standard error."""
    click.secho(f"Warning: {text}", fg="yellow", err=True)
