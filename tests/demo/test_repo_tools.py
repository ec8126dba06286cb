"""The tools of the demonstration stay inside the repository and answer in sentences."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """The tools, with a small repository of their own."""
    spec = importlib.util.spec_from_file_location("repo_tools", EXAMPLES / "repo_tools.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    root = tmp_path / "repository"
    (root / "core").mkdir(parents=True)
    (root / "core" / "history.py").write_text("class History:\n    pass\n")
    (root / "core" / "view.py").write_text("class HistoryView:\n    pass")
    (root / "core" / "image.bin").write_bytes(b"\xff\xfeclass History")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "secret.py").write_text("class History:\n")
    (tmp_path / "outside.py").write_text("class History:\n")
    monkeypatch.setattr(module, "ROOT", root)
    return module


def test_whole_words_are_found_in_text_files_that_are_not_hidden(tools):
    assert tools.find_text("class History", "core") == "core/history.py"
    assert tools.find_text("class History", ".") == "core/history.py"


def test_nothing_found_is_said(tools):
    assert tools.find_text("class Nothing", "core") == "No file in core contains 'class Nothing'."


def test_many_matches_are_cut_with_their_number(tools):
    for number in range(23):
        (tools.ROOT / f"f{number:02}.py").write_text("needle")

    answer = tools.find_text("needle", ".").splitlines()
    assert len(answer) == 21
    assert answer[-1] == "... and 3 more files"


@pytest.mark.parametrize(("path", "lines"), [("core/history.py", 2), ("core/view.py", 2), ("/core/view.py", 2)])
def test_lines_are_counted_with_or_without_a_last_newline(tools, path, lines):
    assert tools.count_lines(path) == f"{path.lstrip('/')} has {lines} lines."


@pytest.mark.parametrize("path", ["../outside.py", "core/../../outside.py", ".hidden/secret.py"])
def test_nothing_outside_is_read(tools, path):
    with pytest.raises(ValueError, match="outside the repository"):
        tools.count_lines(path)


def test_a_link_that_leads_outside_is_not_followed(tools):
    (tools.ROOT / "core" / "link.py").symlink_to(tools.ROOT.parent / "outside.py")
    assert tools.find_text("class History", "core") == "core/history.py"
    with pytest.raises(ValueError, match="outside the repository"):
        tools.count_lines("core/link.py")


@pytest.mark.parametrize(("path", "problem"), [("core/gone.py", "no core/gone.py"), ("core", "not a text file")])
def test_what_is_no_file_is_said(tools, path, problem):
    with pytest.raises(ValueError, match=problem):
        tools.count_lines(path)
