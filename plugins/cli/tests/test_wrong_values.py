"""`ropewalk run` with values that nobody can use, and agents that fail at the end."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("option", ["--model", "--agent", "--tools", "--plugin", "--session", "--snapshot"])
@pytest.mark.parametrize("value", ["", " "])
def test_an_option_that_is_blank_is_wrong_usage(shell, option, value):
    """As the text of a variable that is not set: the embedded model is not what was meant with `-m "$MODEL"`."""
    if (option, value) == ("--snapshot", " "):
        return  # a strange name of a file, but one

    result = shell.run("run", f"{option}={value}", "hi")

    assert result.exit_code == 2
    assert option in result.stderr
    assert "is not blank" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--tools", "retyr"),
            "Error: PluginError: --tools retyr (neither a file.py nor a module:function): there is no",
        ),
        (
            ("--plugin", "retyr"),
            "Error: PluginError: --plugin retyr: there is no plugin 'retyr': did you mean 'retry'?",
        ),
        (("--plugin", "memory"), "Error: MissingPluginError: --plugin memory needs the plugin ropewalk-memory: pip"),
        (("--tools", "toolbox"), "a module:function) needs the plugin ropewalk-toolbox: pip install ropewalk-toolbox"),
    ],
)
def test_a_plugin_that_there_is_not_is_named_by_its_option(shell, arguments, said):
    result = shell.run("run", "-m", "testing:echo", *arguments, "hi")

    assert result.exit_code == 1
    assert said in result.stderr


def test_a_wrong_model_of_the_environment_is_named_so(shell):
    shell.environment["ROPEWALK_MODEL"] = "openai:x"
    result = shell.run("run", "hi")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: UnknownModelError: ROPEWALK_MODEL='openai:x': no plugin provides")


def test_an_environment_that_adds_the_console_does_no_harm(shell):
    """`ropewalk run` shows the run itself."""
    shell.environment["ROPEWALK_PLUGINS"] = "console"
    result = shell.run("run", "-m", "testing:echo", "hi")

    assert (result.stdout, result.exit_code) == ("hi\n", 0)


CLOSING = """
from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Leaving:
    name = "leaving"

    @hookimpl
    async def on_close(self):
        raise RuntimeError("not closed")


agent = Agent(model=ScriptedModel([{turn}]), plugins=[Leaving()])
"""


@pytest.mark.parametrize("turn", ["ValueError('broken')", "'Hi.'"])
def test_what_ended_the_run_is_told_before_what_failed_when_it_was_closed(shell, turn):
    shell.write("leaving.py", CLOSING.format(turn=turn))
    result = shell.run("run", "--agent", "leaving.py:agent", "hi")

    said = result.stderr.splitlines()
    assert result.exit_code == 1
    if turn == "'Hi.'":
        assert said[0] == "Error: RuntimeError: not closed"
    else:
        assert said[0].endswith("broken")
        assert any("and then ExceptionGroup: " in line for line in said)
