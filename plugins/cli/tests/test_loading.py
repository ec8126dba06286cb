"""What the command line names."""

from __future__ import annotations

import sys

import click
import pytest

from ropewalk_cli.loading import LoadError, load_agent, sort_tools

AGENT = """
class Fake:
    def stream_async(self, prompt): ...

agent = Fake()
other = Fake()
number = 3

def make():
    return Fake()

def wrong():
    return 3

def asks(more):
    return Fake()

def leaves():
    raise SystemExit(3)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with modules; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    before = set(sys.modules)
    (tmp_path / "mine_with_agent.py").write_text(AGENT)
    (tmp_path / "mine_broken.py").write_text("1 / 0")
    (tmp_path / "mine_leaving.py").write_text("raise SystemExit(3)")
    (tmp_path / "mine_hungry.py").write_text("import no_such_module_anywhere")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("spec", ["mine_with_agent:agent", "mine_with_agent:make", "mine_with_agent.py:agent"])
def test_an_agent_is_found_in_the_current_folder(folder, spec):
    assert type(load_agent(spec)).__name__ == "Fake"


def test_an_agent_is_found_by_the_path_of_its_file(folder):
    assert load_agent(f"{folder}/mine_with_agent.py:make").stream_async


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mine_with_agent:nope", "has no 'nope'; the agents in it: agent, other; name one, or a function"),
        ("mine_with_agent:asks", "calling it fails with TypeError: asks"),
        ("mine_with_agent:leaves", "calling it fails with SystemExit: 3"),
        ("mine_leaving:agent", "importing mine_leaving fails with SystemExit: 3"),
        ("mine_with_agent:number", "this is a int: name an Agent"),
        ("mine_with_agent:wrong", "this is a int: name an Agent"),
        ("mine_broken:agent", "importing mine_broken fails with ZeroDivisionError: division by zero"),
        ("mine_hungry:agent", "mine_hungry needs the module 'no_such_module_anywhere', which is not installed"),
        ("mine_missing:agent", "there is no module 'mine_missing', neither in .* nor installed"),
        ("mine_missing.sub:agent", "there is no module 'mine_missing', neither in .* nor installed"),
        ("missing.py:agent", "there is no file missing.py"),
    ],
)
def test_what_is_no_agent_is_named_with_the_reason(folder, spec, message):
    with pytest.raises(LoadError, match=f"--agent {spec}: .*{message}"):
        load_agent(spec)


@pytest.mark.parametrize("spec", ["module", ":agent", "module:", ""])
def test_another_form_is_wrong_usage(spec):
    with pytest.raises(click.BadParameter, match="is not of the form module:name"):
        load_agent(spec)


def test_files_functions_and_plugins_are_told_apart(folder):
    (folder / "tools.py").write_text("")

    sources = sort_tools(["tools.py", "package.module:function", "toolbox"])

    assert sources.tools == [str(folder / "tools.py"), "package.module:function"]
    assert sources.plugins == ["toolbox"]
    assert str(folder) in sys.path


@pytest.mark.parametrize("value", ["missing.py", "./folder/missing"])
def test_a_tool_file_that_does_not_exist_is_wrong_usage(folder, value):
    with pytest.raises(click.BadParameter, match="there is no file"):
        sort_tools([value])
