"""`ropewalk plugins check`."""

from __future__ import annotations

import pytest

from ropewalk.kits.hooks import deprecations
from ropewalk.markers import API_VERSION

GOOD = """
from ropewalk import hookimpl


class GoodPlugin:
    name = "good"

    @hookimpl
    async def around_tool_call(self, call, call_next):
        return await call_next(call)
"""
BAD = """
from ropewalk import hookimpl


class Base:
    @hookimpl
    async def on_event(self, event): ...


class BadPlugin(Base):
    name = "bad"
    api = 99

    @hookimpl
    def on_dleta(self, event): ...

    @hookimpl
    def on_close(self): ...

    @hookimpl
    async def around_tools(self, batch, call_nxt): ...

    def on_agent_ready(self): ...

    async def on_event(self, event): ...
"""
PROJECT = """
[project]
name = "acme-good"
version = "1.0"
dependencies = {dependencies}

[project.entry-points."ropewalk.plugins"]
good = "{value}"
{more}
"""


def project(shell, source, *, value="acme_good:GoodPlugin", dependencies='["ropewalk-core"]', more="", place="src"):
    """A folder with a plugin, in it a package of one module."""
    package = shell.folder / "acme" / place / "acme_good"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    text = PROJECT.format(value=value, dependencies=dependencies, more=more)
    (shell.folder / "acme" / "pyproject.toml").write_text(text)
    return "acme"


def problems(result):
    return [line.removeprefix("- ") for line in result.stdout.splitlines() if line.startswith("- ")]


def test_a_good_file_passes(shell):
    result = shell.run("plugins", "check", shell.write("good.py", GOOD))

    assert (result.exit_code, result.stdout) == (0, "good: around_tool_call\n")
    assert "nothing is wrong with good.py" in result.stderr


@pytest.mark.parametrize("place", ["src", "."])
def test_a_good_folder_passes(shell, place):
    result = shell.run("plugins", "check", project(shell, GOOD, place=place))
    assert (result.exit_code, result.stdout) == (0, "good: around_tool_call\n"), result.stdout


@pytest.mark.parametrize("name", ["cli", "testing"])
def test_an_installed_plugin_passes(shell, name):
    result = shell.run("plugins", "check", name)
    assert result.exit_code == 0, result.stdout


def test_every_refusal_is_listed(shell):
    result = shell.run("plugins", "check", shell.write("bad.py", BAD))

    listed = problems(result)
    wanted = [
        "it is made for hook API 99, this is 1",
        "there is no hook 'on_dleta'",
        "on_close is not async and the hook is awaited",
        "around_tools has no argument 'call_nxt'",
        "on_agent_ready is named like a hook and is not marked",
        "on_event overrides a hook and is not marked",
    ]
    assert result.exit_code == 1
    assert len(listed) == len(wanted)
    for text in wanted:
        assert [line for line in listed if text in line and "plugin 'bad'" in line and "To fix it: " in line], text
    assert "6 problems in bad.py" in result.stderr


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ('name = "go od"', "its name is 'go od'"),
        ('name = "good"; tier = "observers"', "its tier is 'observers'"),
        ('name = "good"; tier = "observer"', "an observer cannot implement around_tool_call"),
        ('name = "good"; api = "1"', "its api is '1'"),
        ('name = "good"; order = "last"', "its order 'last' is no number"),
        ('name = "good"; Config = int', "Config of plugin 'good' is <class 'int'>"),
        ('name = "good"\n\n    def __init__(self, key): ...', "GoodPlugin cannot be made without options: TypeError"),
    ],
)
def test_what_is_wrong_with_a_class_is_said(shell, change, problem):
    result = shell.run("plugins", "check", shell.write("good.py", GOOD.replace('name = "good"', change)))

    [listed] = problems(result)
    assert problem in listed
    assert result.exit_code == 1
    assert "1 problem in good.py" in result.stderr


def test_name_and_tier_are_both_listed(shell):
    source = GOOD.replace('name = "good"', 'name = "go od"; tier = "observers"')
    assert len(problems(shell.run("plugins", "check", shell.write("good.py", source)))) == 2


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1", "good.py has no plugin: a plugin class has"),
        ("import no_such_module", "good.py cannot be imported: ModuleNotFoundError"),
        ("class Plugin(:", "good.py cannot be imported: SyntaxError"),
        ("raise SystemExit(0)", "good.py cannot be imported: SystemExit: 0"),
        (
            "class Unmarked:\n    name = 'unmarked'\n    def on_delta(self, event): ...",
            "is named like a hook and is not",
        ),
        (f"import sys\nsys.modules['boto3.session'] = sys\n{GOOD}", "good.py loads boto3: import it inside"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(shell, source, problem, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "modules", dict(sys.modules)) if "boto3" in source else None
    result = shell.run("plugins", "check", shell.write("good.py", source))

    assert [line for line in problems(result) if problem in line], result.output
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"value": "acme_good:Missing"}, "entry point good = acme_good:Missing cannot be loaded: AttributeError"),
        ({"value": "acme_bad:GoodPlugin"}, "cannot be loaded: ModuleNotFoundError"),
        ({"value": "acme_good:hookimpl"}, "and not a plugin class"),
        ({"dependencies": "[]"}, "does not depend on ropewalk-core"),
        ({"more": 'other = "acme_good:GoodPlugin"'}, "the class is named 'good': give the entry point and the class"),
        (
            {"more": '[project.entry-points."ropewalk.on_demand"]\ngood = "acme_good:Other"'},
            "good = acme_good:Other in the group ropewalk.on_demand is no plugin",
        ),
        (
            {"more": '[project.entry-points."ropewalk.parameters"]\n"model.x" = "acme_good:Other"'},
            "model.x = acme_good:Other in the group ropewalk.parameters is no plugin",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(shell, options, problem):
    result = shell.run("plugins", "check", project(shell, GOOD, **options))

    assert [line for line in problems(result) if problem in line], result.output
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("owned", "problem"),
    [
        ("model.x", "plugin 'good' owns 'model.x' and has no hook provide_model, which is asked for it: implement it"),
        ("sandbox.x", "owns 'sandbox.x' and has no hook provide_sandbox"),
        ("session.x", "owns 'session.x' and has no method open_store: write `def open_store(self, spec)`"),
        ("retry_strategy", "owns 'retry_strategy' and has no hook adopt"),
        ("as_tool", "owns 'as_tool' and has no hook provide_method"),
        ("modle.x", "owns 'modle.x', which nobody asks for"),
        ("model.", "owns 'model.', which nobody asks for"),
        ("retry_stragety", "owns 'retry_stragety', which nobody asks for"),
        ("_runs", "owns '_runs', which nobody asks for"),
    ],
)
def test_a_parameter_that_the_plugin_could_not_answer_for_is_said(shell, owned, problem):
    more = f'[project.entry-points."ropewalk.parameters"]\n"{owned}" = "acme_good:GoodPlugin"'
    result = shell.run("plugins", "check", project(shell, GOOD, more=more))

    [listed] = problems(result)
    assert problem in listed
    assert result.exit_code == 1


ANSWERING = """
    @hookimpl
    def provide_model(self, spec): ...

    @hookimpl
    def adopt(self, value): ...

    def open_store(self, spec): ...
"""


@pytest.mark.parametrize("owned", ["model.x", "session.x", "retry_strategy", "limits"])
def test_a_parameter_that_the_plugin_can_answer_for_is_fine(shell, owned):
    """`open_store` is called for a store and is no hook: it takes part in no run."""
    more = f'[project.entry-points."ropewalk.parameters"]\n"{owned}" = "acme_good:GoodPlugin"'
    result = shell.run("plugins", "check", project(shell, GOOD + ANSWERING, more=more))

    assert result.exit_code == 0, result.stdout


@pytest.fixture
def deprecated(monkeypatch):
    fix = deprecations.Deprecation(API_VERSION + 1, "write on_thing")
    monkeypatch.setattr(deprecations, "DEPRECATED", {("around_tool_call", None): fix, ("on_delta", "event"): fix})


def test_what_is_deprecated_is_listed_and_is_no_error(shell, deprecated):
    result = shell.run("plugins", "check", shell.write("good.py", GOOD))

    told = [line for line in result.stdout.splitlines() if line.startswith("~ ")]
    assert len(told) == 1
    assert told[0].startswith("~ plugin 'good' (")
    assert "the hook around_tool_call is deprecated, and gone in hook API 2 [" in told[0]
    assert told[0].endswith("To fix it: write on_thing")
    assert (result.exit_code, result.stderr) == (0, "1 deprecation in good.py\n")


def test_what_is_deprecated_is_listed_for_folders_and_beside_problems(shell, deprecated):
    result = shell.run("plugins", "check", project(shell, GOOD, dependencies="[]"))

    assert [line[:2] for line in result.stdout.splitlines()[1:]] == ["- ", "~ "]
    assert (result.exit_code, result.stderr) == (1, "1 problem in acme\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "has no pyproject.toml"),
        ("[project", "cannot be read as a project"),
        ("[tool.x]", "cannot be read as a project: KeyError"),
        ("project = 3", "cannot be read as a project"),
        ("[project]\ndependencies = ['ropewalk-core']", "has no entry point in the group ropewalk.plugins"),
    ],
)
def test_a_folder_that_is_no_plugin_is_said(shell, text, problem):
    (shell.folder / "empty").mkdir()
    if text is not None:
        (shell.folder / "empty" / "pyproject.toml").write_text(text)

    result = shell.run("plugins", "check", "empty")

    [listed] = problems(result)
    assert problem in listed
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gone.py", "gone.py: there is no such file or folder"),
        ("some/folder", "some/folder: there is no such file or folder"),
        ("testign", "there is no plugin 'testign': did you mean 'testing'?"),
        ("memory", "pip install ropewalk-memory"),
    ],
)
def test_a_target_that_is_not_there_is_an_error(shell, target, message):
    result = shell.run("plugins", "check", target)

    assert result.exit_code == 1
    assert message in result.stderr


def test_the_path_of_imports_is_as_before(shell):
    import sys

    before = list(sys.path)
    shell.run("plugins", "check", project(shell, "raise RuntimeError"))
    assert sys.path == before


def test_a_file_that_is_no_python_is_said(shell):
    [listed] = problems(shell.run("plugins", "check", shell.write("good.txt", GOOD)))
    assert "good.txt is no Python file" in listed


@pytest.mark.parametrize("arguments", [("plugins", "check", ""), ("resume", " ")])
def test_a_target_that_is_blank_is_wrong_usage(shell, arguments):
    result = shell.run(*arguments)

    assert result.exit_code == 2
    assert "is not blank" in result.stderr
