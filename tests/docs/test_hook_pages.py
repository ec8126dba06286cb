"""The pages on hooks are what their generator writes, and every hook has an example that runs."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import pytest

from ropewalk.kits.hooks import discovery
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.specs.control import ControlSpecs
from ropewalk.specs.tools import ToolSpecs

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = DOCS / "hooks" / "examples"
FIX = "run: python docs/generate_hooks.py"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_hooks", DOCS / "generate_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(generator):
    wanted = {path.name: text for path, text in generator.pages().items()}
    found = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "hooks").glob("*.md")}
    assert sorted(found) == sorted(wanted), FIX
    assert [name for name in wanted if found[name] != wanted[name]] == [], FIX


def test_every_hook_stands_on_one_page(generator):
    text = "\n".join(text for path, text in generator.pages().items() if path.name != "README.md")
    assert {hook: text.count(f"\n## {hook}\n") for hook in HOOKS} == dict.fromkeys(HOOKS, 1)


def test_every_hook_has_an_example_and_no_example_is_left_over():
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(HOOKS)


@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_the_example_runs_and_implements_its_hook(hook, ropewalk_env, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    discovery.refresh()
    names = runpy.run_path(str(EXAMPLES / f"{hook}.py"), run_name="__main__")

    assert [value for value in names.values() if isinstance(value, type) and hook in vars(value)]
    assert capsys.readouterr().out == ""


def test_docstrings_become_lists(generator):
    arguments = "Args:\n    one: The first,\n        in two lines.\n    two: The second."
    text = f"Does it.\n\nMore.\n\n{arguments}\n\nReturns:\n    A thing: that."

    assert generator._sections(text) == [
        "Does it.",
        "",
        "More.",
        "",
        "Arguments:",
        "",
        "* `one`: The first, in two lines.",
        "* `two`: The second.",
        "",
        "Returns:",
        "",
        "* A thing: that.",
        "",
    ]


def test_a_declaration_has_its_types_and_says_where_they_are_from(generator):
    text = "\n".join(generator._hook("decide_stop", vars(ControlSpecs)["decide_stop"]))

    assert (
        "from ropewalk import Stop\nfrom ropewalk.kits.calls.invocation import Cycle\n\n\n"
        "async def decide_stop(self, cycle: Cycle, agent: Agent) -> Stop | None: ...\n"
    ) in text


def test_a_long_declaration_has_a_line_for_each_argument(generator):
    text = "\n".join(generator._hook("around_tool_call", vars(ToolSpecs)["around_tool_call"]))

    assert "async def around_tool_call(\n    self,\n    call: ToolCall,\n" in text


def test_a_stale_page_is_told(generator, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    assert generator.main(["--check"]) == 1
    assert "README.md" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "left-over.md").write_text("old")
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    assert not (tmp_path / "left-over.md").exists()
