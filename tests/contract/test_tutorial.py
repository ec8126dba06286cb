"""docs/write-a-plugin.md: what it says is done, and comes out as it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "write-a-plugin.md"
FILE = re.compile(r"(?ms)^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$")
BLOCK = re.compile(r"(?ms)^```(\w+)\n(.*?)^```$")
MODULE = "acme-budget/src/acme_budget/__init__.py"


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture
def versions(page):
    """The files of the page: path to its versions, in order."""
    files: dict[str, list[str]] = {}
    for path, text in FILE.findall(page):
        files.setdefault(path, []).append(text)

    return files


def write(folder, versions, number):
    for path, texts in versions.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(texts[min(number, len(texts) - 1)])


def test_every_block_is_known(page, versions):
    assert sorted(versions) == [
        "acme-budget/README.md",
        "acme-budget/pyproject.toml",
        MODULE,
        "acme-budget/tests/test_budget.py",
        "try.py",
    ]
    assert len(versions[MODULE]) == 2
    others = [
        language for language, text in BLOCK.findall(page) if not any(text in texts for texts in versions.values())
    ]
    assert others == ["text", "bash", "bash"]


def test_the_first_version_is_about_twenty_lines(versions):
    assert len(versions[MODULE][0].splitlines()) <= 22


def test_the_plugin_is_tried_checked_installed_tested_and_removed(page, versions, throwaway, tmp_path):
    [expected] = [text for language, text in BLOCK.findall(page) if language == "text"]
    write(tmp_path, versions, 0)
    start = "import sys; sys.path.insert(0, 'acme-budget/src'); import runpy; runpy.run_path('try.py')"
    assert throwaway.run("-c", start, cwd=tmp_path) == expected

    checked = subprocess.run(
        [sys.executable, "-m", "ropewalk_cli.main", "plugins", "check", "acme-budget"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stdout) == (0, "budget: around_tool_call\n")

    write(tmp_path, versions, 1)
    throwaway.install(tmp_path / "acme-budget")
    assert throwaway.run("try.py", cwd=tmp_path) == expected

    tests = throwaway.run("-m", "pytest", "-q", "-o", "asyncio_mode=auto", "acme-budget", cwd=tmp_path)
    assert re.search(r"^\d+ passed", tests, re.MULTILINE), tests

    unnamed = (tmp_path / "try.py").read_text().replace(", plugins=[BudgetPlugin()]", "").partition("\n")[2]
    assert throwaway.run("-c", unnamed, cwd=tmp_path) == expected
    throwaway.uninstall("acme-budget")
    assert throwaway.run("-c", unnamed, cwd=tmp_path) == "nothing\n"
