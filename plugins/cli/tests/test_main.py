"""The program and its table of commands."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ropewalk import hookimpl
from ropewalk_cli import CliPlugin, commands
from ropewalk_cli.main import program


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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([3, click.Command("hello")], "a command of the plugin 'wrong' is left out: 3 is no click.Command"),
        (SystemExit(5), "the commands of the plugin 'wrong' are left out: SystemExit: 5"),
    ],
)
def test_commands_that_are_none_are_left_out(shell, plugins, answer, said):
    class Wrong:
        name = "wrong"

        @hookimpl
        def provide_commands(self):
            if isinstance(answer, SystemExit):
                raise answer

            return answer

    plugins(Wrong())
    result = shell.run("--help")

    assert result.exit_code == 0
    assert said in result.stderr


def test_an_unknown_command_is_wrong_usage(shell):
    result = shell.run("nonesuch")

    assert result.exit_code == 2
    assert "No such command 'nonesuch': the commands are run, chat, resume, plugins" in result.stderr
    assert "No such command 'chta': did you mean 'chat'?" in shell.run("chta").stderr


def test_a_wrong_file_of_options_is_one_error_for_commands_of_plugins(shell):
    """Not a warning for each plugin, and then the untruth that there is no such command."""
    shell.write("ropewalk.toml", "[plugins.retyr]\nmax_attempts = 3\n")

    result = shell.run("sessions", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: OptionsError: ropewalk.toml has options for a plugin 'retyr'")
    assert len(result.stderr.splitlines()) == 1

    result = shell.run("--help")
    assert result.exit_code == 0
    assert len(result.stderr.splitlines()) == 1
    assert "the commands of plugins are left out: ropewalk.toml has options" in result.stderr


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True)])
def test_no_color_is_kept_to(monkeypatch, value, coloured):
    monkeypatch.setenv("NO_COLOR", value)
    result = CliRunner().invoke(program, ["run", "-m", "testing:nope", "hi"], color=True)

    assert result.stderr.startswith("\x1b[31mError: " if coloured else "Error: ")


PLUGIN = """
import logging, warnings
from ropewalk import hookimpl


class Plugin:
    name = "noisy"

    @hookimpl
    def on_agent_ready(self):
        warnings.warn("a switch is missing", RuntimeWarning)
        warnings.warn("old", DeprecationWarning)
        try:
            raise ValueError("no \\x1b[31mentry")
        except ValueError:
            logging.getLogger("ropewalk.x").exception("could not look")
"""


@pytest.fixture
def as_a_program(shell):
    """Runs the program as a process, with a plugin of a module in the current folder."""
    shell.write(
        "noisy.py",
        PLUGIN + "\n\nfrom ropewalk import Agent\n"
        "from ropewalk_testing import ScriptedModel\n"
        "agent = lambda: Agent(model=ScriptedModel(['Hi.']), plugins=[Plugin()])\n",
    )

    def run(*arguments, **options):
        command = [sys.executable, "-c", "from ropewalk_cli.main import main; main()", *arguments]
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run(command, check=False, text=True, **given)

    return run


def test_warnings_and_logged_errors_are_a_line_each(as_a_program):
    result = as_a_program("run", "--agent", "noisy.py:agent", "hi")

    assert result.stdout == "Hi.\n"
    assert result.stderr.splitlines() == [
        "Warning: a switch is missing",
        "Warning: could not look (ValueError: no \N{REPLACEMENT CHARACTER}[31mentry)",
    ]
    assert "Traceback" in as_a_program("run", "--agent", "noisy.py:agent", "--debug", "hi").stderr


def closing(*descriptors):
    """For a child: closes what a shell closes with `>&-` and `<&-`."""
    return lambda: [os.close(each) for each in descriptors]


def test_a_closed_output_is_no_error(as_a_program):
    result = as_a_program("run", "-m", "testing:echo", "hi", preexec_fn=closing(1))
    assert (result.stderr, result.returncode) == ("", 0)


def test_a_closed_input_is_an_empty_one(as_a_program):
    assert as_a_program("run", "-m", "testing:echo", "hi", preexec_fn=closing(0)).stdout == "hi\n"
    assert as_a_program("chat", "-m", "testing:echo", preexec_fn=closing(0)).returncode == 0
    for prompt in ((), ("-",)):
        result = as_a_program("run", "-m", "testing:echo", *prompt, preexec_fn=closing(0))
        assert "Error: there is no prompt" in result.stderr
        assert result.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(
    "arguments", [("--help",), ("plugins", "explain", "on_event"), ("run", "-m", "testing:echo", "hi")]
)
def test_a_full_output_is_one_error(as_a_program, arguments):
    with Path("/dev/full").open("w") as full:
        result = as_a_program(*arguments, stdout=full)

    assert result.stderr.startswith("Error: OSError: the output cannot be written: No space left on device\n")
    assert "Traceback" not in result.stderr
    assert result.returncode == 1


def test_the_programs_own_commands_come_from_its_plugin_too():
    assert [command.name for command in CliPlugin().provide_commands()] == ["run", "chat", "resume", "plugins"]


def test_importing_the_plugin_does_not_import_click():
    program = "import sys, ropewalk_cli; sys.exit('click' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
