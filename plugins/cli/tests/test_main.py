"""The program and its table of commands."""

from __future__ import annotations

import platform
import subprocess
import sys

import click
import pytest

from ropewalk import hookimpl
from ropewalk_cli import CliPlugin, commands


class HelloPlugin:
    name = "hello"

    @hookimpl
    def provide_commands(self):
        return [click.Command("hello", callback=lambda: click.echo("Hello.")), click.Command("run")]


class BrokenPlugin:
    name = "broken"

    @hookimpl
    def provide_commands(self):
        raise ValueError("no commands today")


@pytest.fixture
def plugins(monkeypatch):
    """Stands in for what is installed."""

    def install(*installed):
        monkeypatch.setattr(commands, "_loaded", lambda: iter(installed))

    return install


def test_the_version_is_shown(shell):
    assert shell.run("--version").stdout == f"ropewalk 0.1.0 (Python {platform.python_version()})\n"


def test_a_plugin_brings_commands(shell, plugins):
    plugins(HelloPlugin())

    assert shell.run("hello").stdout == "Hello.\n"
    named = [line.split()[0] for line in shell.run("--help").stdout.splitlines()[-5:]]
    assert named == ["run", "chat", "resume", "plugins", "hello"]


def test_a_plugin_cannot_take_the_place_of_a_command(shell, plugins):
    plugins(HelloPlugin())

    result = shell.run("--help")

    assert "Warning: the command 'run' of the plugin 'hello' is left out: its name is taken" in result.stderr
    assert "Asks an agent" in result.stdout


def test_a_plugin_whose_commands_fail_does_not_stop_the_program(shell, plugins):
    plugins(BrokenPlugin(), HelloPlugin())

    result = shell.run("hello")

    assert result.stdout == "Hello.\n"
    assert "the commands of the plugin 'broken' are left out: ValueError: no commands today" in result.stderr


def test_an_unknown_command_is_wrong_usage(shell):
    result = shell.run("nonesuch")

    assert result.exit_code == 2
    assert "No such command 'nonesuch'" in result.stderr


def test_the_programs_own_commands_come_from_its_plugin_too():
    assert [command.name for command in CliPlugin().provide_commands()] == ["run", "chat", "resume", "plugins"]


def test_importing_the_plugin_does_not_import_click():
    program = "import sys, ropewalk_cli; sys.exit('click' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
