"""The code on the pages parses, and what it imports from this repository is there."""

from __future__ import annotations

import ast
import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?ms)^```(\w+)\n(.*?)^```$")
PLACES = ("README.md", "docs/*.md", "docs/hooks/*.md", "core/*.md", "plugins/*/*.md", "contrib/*/*.md", "examples/*.md")
PAGES = [path for pattern in PLACES for path in sorted(ROOT.glob(pattern))]
MADE_UP = {"ropewalk_stopwatch"}  # the plugin that README.md writes


def parsed(language, text):
    if language == "toml":
        tomllib.loads(text)
    elif language == "json":
        json.loads(text)
    elif language == "python":
        return ast.parse(text)

    return ast.parse("")


def imported(tree):
    """The pairs of module and name that a text imports from this repository."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0].startswith("ropewalk"):
            yield from ((node.module, alias.name) for alias in node.names)


def missing(text, language="python"):
    pairs = [pair for pair in imported(parsed(language, text)) if pair[0] not in MADE_UP]
    return [pair for pair in pairs if not hasattr(importlib.import_module(pair[0]), pair[1])]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_code_parses_and_its_imports_are_there(page):
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert [pair for language, text in blocks for pair in missing(text, language)] == []


def test_a_name_that_is_gone_would_be_seen():
    assert missing("from ropewalk import Agent, NoSuchThing") == [("ropewalk", "NoSuchThing")]


def test_code_that_does_not_parse_would_be_seen():
    with pytest.raises(SyntaxError):
        missing("agent = Agent(")
