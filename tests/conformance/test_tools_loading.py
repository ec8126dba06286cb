"""Tools: where they come from, and what is refused (conformance 58 to 62)."""

from __future__ import annotations

import pytest

from ropewalk import tool
from ropewalk.errors import ToolDefinitionError
from ropewalk_testing import use

SOURCE = '''
from ropewalk import tool


@tool
def shout(text: str) -> str:
    """Shouts."""
    return text.upper()


def helper():
    return 1
'''


def test_tools_load_from_a_file(ask, make_agent, tool_results, tmp_path):
    """Conformance 58."""
    (tmp_path / "my_tools.py").write_text(SOURCE)
    agent, _ = make_agent([use("shout", {"text": "hi"}), "ok"], tools=[str(tmp_path / "my_tools.py")])

    ask(agent, "go")

    assert agent.tool_names == ["shout"]
    assert tool_results(agent.messages)[0]["content"] == [{"text": "HI"}]


def test_a_tool_loads_from_a_module_and_function(ask, make_agent, tool_results, tmp_path, monkeypatch):
    """Conformance 58."""
    (tmp_path / "conformance_58_tools.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    agent, _ = make_agent([use("shout", {"text": "hi"}), "ok"], tools=["conformance_58_tools:shout"])

    ask(agent, "go")

    assert agent.tool_names == ["shout"]
    assert tool_results(agent.messages)[0]["content"] == [{"text": "HI"}]


@pytest.mark.parametrize("spec", ["./missing.py", "no_such_module_58:f", "json:no_such_function", "json:dumps"])
def test_a_tool_that_cannot_be_loaded_is_an_error_that_names_it(make_agent, spec):
    """Conformance 58."""
    with pytest.raises(ToolDefinitionError) as caught:
        make_agent(["never"], tools=[spec])

    assert spec.split(":")[-1].removeprefix("./") in str(caught.value)


@pytest.mark.parametrize("source", ["def broken(:\n", "raise RuntimeError('at import')\n", "x = 1\n"])
def test_a_file_that_gives_no_tool_is_an_error_that_names_it(make_agent, tmp_path, source):
    """Conformance 58."""
    (tmp_path / "odd_tools.py").write_text(source)

    with pytest.raises(ToolDefinitionError, match=r"odd_tools\.py"):
        make_agent(["never"], tools=[str(tmp_path / "odd_tools.py")])


def test_a_plain_function_is_an_error_that_says_what_to_do(make_agent):
    """Conformance 60 (B)."""

    def plain(x: int) -> int:
        return x

    with pytest.raises(ToolDefinitionError, match="plain") as caught:
        make_agent(["never"], tools=[plain])

    assert "@tool" in str(caught.value)


@pytest.mark.parametrize("entry", [42, None, object(), 1.5, b"x", lambda: None], ids=lambda entry: type(entry).__name__)
def test_what_is_no_tool_is_an_error(make_agent, entry):
    """Conformance 60 (B)."""
    with pytest.raises(ToolDefinitionError):
        make_agent(["never"], tools=[entry])


def test_names_that_differ_by_a_dash_only_are_refused(make_agent):
    """Conformance 62."""

    @tool(name="look-up")
    def dashed() -> str:
        """Looks up."""
        return "a"

    @tool(name="look_up")
    def underscored() -> str:
        """Looks up."""
        return "b"

    with pytest.raises(ValueError, match="look") as caught:
        make_agent(["never"], tools=[dashed, underscored])

    assert "look-up" in str(caught.value)
    assert "look_up" in str(caught.value)
