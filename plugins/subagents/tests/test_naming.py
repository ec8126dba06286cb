from __future__ import annotations

import pytest

from ropewalk import ToolDefinitionError
from ropewalk.kits.messages.rules import is_legal_tool_name
from ropewalk_subagents.naming import checked_name, legal_name


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("researcher", "researcher"),
        ("Web research (fast)", "Web_research_fast"),
        ("a-b_c", "a-b_c"),
        ("admin.tools/list", "admin_tools_list"),
        ("  padded ", "padded"),
        ("x" * 64, "x" * 64),
    ],
)
def test_a_name_is_made_legal_and_stays_readable(name, legal):
    assert legal_name(name) == legal


@pytest.mark.parametrize("name", ["", " ", "名前", "___", "x" * 65, "é" * 70, "\ud800", "a" * 70 + "!"])
def test_what_cannot_be_shown_gets_a_digest(name):
    made = legal_name(name)

    assert is_legal_tool_name(made)
    assert legal_name(name) == made


def test_names_that_begin_alike_stay_apart():
    assert legal_name("x" * 64 + "a") != legal_name("x" * 64 + "b")
    assert legal_name("名前") != legal_name("名")


@pytest.mark.parametrize("name", ["", "has space", "名前", "a.b", "x" * 65, 3, b"x"])
def test_a_chosen_name_is_refused_when_providers_would_not_take_it(name):
    with pytest.raises(ToolDefinitionError, match=r"as_tool\(name=.*is not allowed: use 1 to 64"):
        checked_name(name)


def test_a_legal_chosen_name_stays():
    assert checked_name("ask-it_1") == "ask-it_1"
