"""The tools of one agent, by name."""

from __future__ import annotations

import pytest

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.tool_registry import ToolRegistry, is_tool

SCHEMA = {"json": {"type": "object"}}


class Named:
    def __init__(self, name, spec=None):
        self.tool_name = name
        self.tool_spec = spec or {"name": name, "description": name, "inputSchema": SCHEMA}

    async def invoke(self, call):
        raise NotImplementedError


def registry(*names):
    made = ToolRegistry()
    for name in names:
        made.add(Named(name))

    return made


@pytest.mark.parametrize("name", ["a", "a" * 64, "0", "_", "-", "A-b_9"])
def test_names_that_providers_take_are_taken(name):
    assert registry(name).names == [name]


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "a.b", "ä", "a\n", "٣", None, 3, b"a"])
def test_other_names_are_refused(name):
    with pytest.raises(ToolDefinitionError, match="use 1 to 64 of the letters"):
        registry(name)


def test_names_that_differ_only_by_dashes_are_refused_and_found():
    made = registry("read-file")

    with pytest.raises(ToolDefinitionError, match="differs from 'read-file' only by - and _"):
        made.add(Named("read_file"))

    assert made.find("read_file") is made.get("read-file")
    assert made.get("read_file") is None
    made.remove("read-file")
    made.add(Named("read_file"))
    assert made.names == ["read_file"]


def test_a_tool_that_is_there_may_be_added_again_and_another_of_its_name_not():
    made = registry("a")
    made.add(made.get("a"))

    with pytest.raises(ToolDefinitionError, match="'a' is taken"):
        made.add(Named("a"))


def test_a_tool_that_is_renamed_later_is_offered_by_the_name_that_finds_it():
    made = registry("before")
    tool = made.get("before")
    tool.tool_name = "after"
    tool.tool_spec = {**tool.tool_spec, "name": "after"}

    (spec,) = made.specs
    assert spec["name"] == "before"
    assert made.get(spec["name"]) is tool


def test_specs_are_made_anew_after_each_change():
    made = registry("a")
    assert made.specs is made.specs

    made.add(Named("b"))
    assert [spec["name"] for spec in made.specs] == ["a", "b"]
    made.replace(Named("a", {"name": "x", "description": "new", "inputSchema": SCHEMA}))
    assert made.specs[0] == {"name": "a", "description": "new", "inputSchema": SCHEMA}
    made.remove("b")
    made.remove("b")
    assert [spec["name"] for spec in made.specs] == ["a"]


def test_a_copy_is_changed_on_its_own():
    made = registry("a")
    other = made.copy()
    other.remove("a")
    other.add(Named("b"))

    assert (made.names, other.names) == (["a"], ["b"])
    assert made.find("a") is not None


@pytest.mark.parametrize(
    "spec",
    [
        "text",
        {"name": "a"},
        {"name": "a", "description": "d"},
        {"name": "a", "description": None, "inputSchema": SCHEMA},
        {"name": "a", "description": "d", "inputSchema": {"type": "object"}},
        {"name": "a", "description": "d", "inputSchema": {"json": []}},
    ],
)
def test_a_spec_of_the_wrong_shape_is_refused_with_the_right_one(spec):
    made = ToolRegistry()
    made.add(Named("a", spec))

    with pytest.raises(ToolDefinitionError, match=r'tool \'a\' has a spec of the wrong shape: use {"name"'):
        _ = made.specs


def test_what_is_no_tool():
    assert is_tool(Named("a"))
    assert not is_tool(Named)
    assert not any(map(is_tool, (None, "a", lambda: None, {"tool_name": "a"})))
