from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from ropewalk import Agent, PluginError, tool
from ropewalk.errors import MissingPluginError, ToolDefinitionError
from ropewalk_testing import ScriptedModel, use

SOURCE = "from ropewalk_tools import tool\n\n@tool\ndef {name}() -> str:\n    return {says!r}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `tools` of an otherwise empty working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    yield tmp_path / "tools"
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(folder: Path):
    """Writes a file with one tool: `write("shout", "one")`."""

    def write(name: str, says: str = "one", file: str | None = None, source: str = SOURCE) -> None:
        (folder / f"{file or name}.py").write_text(source.format(name=name, says=says))

    return write


def watching(*turns: Any, **parameters: Any) -> Agent:
    return Agent(model=ScriptedModel(list(turns)), load_tools_from_directory=True, callback_handler=None, **parameters)


def said(agent: Agent) -> list[str]:
    blocks = [block for message in agent.messages for block in message["content"] if "toolResult" in block]
    return [block["toolResult"]["content"][0]["text"] for block in blocks]


def test_all_tools_of_the_folder_are_loaded(folder, write):
    write("second")
    write("first")
    write("hidden", file="_hidden")
    (folder / "helper.py").write_text("WORD = 'no tool in here'\n")
    (folder / "notes.txt").write_text("none of ours")

    assert watching().tool_names == ["first", "second"]


def test_the_folder_is_not_looked_at_unless_asked(write):
    write("shout")

    assert Agent(model=ScriptedModel([]), callback_handler=None).tool_names == []


def test_a_folder_that_is_missing_is_reported_and_may_come_later(folder, write, caplog):
    folder.rmdir()
    agent = watching("hi", use("shout", {}), "done")
    assert "there is no folder" in caplog.text

    agent("go")
    folder.mkdir()
    write("shout", "late")
    agent("go on")
    assert said(agent) == ["late"]


def test_an_edited_file_counts_at_the_next_call(write):
    write("shout", "one")
    agent = watching(use("shout", {}), "done", use("shout", {}), "done")

    agent("go")
    write("shout", "two")  # as long, and within the same tick of the clock perhaps
    agent("go on")

    assert said(agent) == ["one", "two"]


def test_a_file_that_a_tool_writes_serves_the_next_turn_of_the_same_run(write):
    write("shout", "old")

    @tool
    def improve() -> str:
        write("shout", "new")
        write("extra", "more")
        return "improved"

    agent = watching(use("improve", {}), [use("shout", {}), use("extra", {})], "done", tools=[improve])
    agent("go")

    assert said(agent) == ["improved", "new", "more"]
    assert [spec["name"] for spec in agent.model.requests[0].tool_specs] == ["improve", "shout"]
    assert [spec["name"] for spec in agent.model.requests[1].tool_specs] == ["improve", "shout", "extra"]


def test_a_changed_description_is_told_to_the_model(folder, write):
    write("shout")
    agent = watching("a", "b")
    agent("go")
    write("shout", source=SOURCE.replace("-> str:", '-> str:\n    """Shouts."""'))
    agent("go on")

    assert [request.tool_specs[0]["description"] for request in agent.model.requests] == ["shout", "Shouts."]


def test_an_edited_file_counts_in_a_direct_call(write):
    write("shout", "one")
    agent = watching()

    assert agent.tool.shout()["content"] == [{"text": "one"}]
    write("shout", "two")
    assert agent.tool.shout()["content"] == [{"text": "two"}]


def test_a_file_that_is_gone_takes_its_tools_along(folder, write):
    write("shout")
    write("other")
    agent = watching("hi", "ho")
    (folder / "shout.py").unlink()
    agent("go")

    assert agent.tool_names == ["other"]
    write("other", source=SOURCE.replace("{name}()", "renamed()"))
    agent("go on")
    assert agent.tool_names == ["renamed"]


def test_a_broken_file_is_an_error_when_the_agent_is_built(folder):
    (folder / "shout.py").write_text("def broken(:\n")

    with pytest.raises(ToolDefinitionError, match=r"tools/shout.py' is no valid Python"):
        watching()


def test_a_file_that_breaks_later_is_reported_once_and_its_last_version_serves(folder, write, caplog):
    write("shout", "good")
    agent = watching(use("shout", {}), use("shout", {}), "done", use("shout", {}), "done")
    (folder / "shout.py").write_text("def half(")
    agent("go")

    assert said(agent) == ["good", "good"]
    assert caplog.text.count("what was loaded from it before stays") == 1
    write("shout", "mended")
    agent("go on")
    assert said(agent) == ["good", "good", "mended"]


def test_a_name_that_is_taken_is_an_error_when_the_agent_is_built(write):
    write("shout")

    with pytest.raises(ToolDefinitionError, match="'shout' is taken"):
        watching(tools=[tool(name="shout")(lambda: "mine")])


@pytest.mark.parametrize(("taken", "clash"), [("shout", "shout"), ("to-shout", "to_shout")])
def test_a_name_that_is_taken_later_is_reported_once_and_left_to_its_owner(write, caplog, taken, clash):
    agent = watching("a", use(taken, {}), "b", tools=[tool(name=taken)(lambda: "mine")])
    agent("go")
    write(clash, "theirs")
    agent("go on")

    assert said(agent) == ["mine"]
    assert caplog.text.count("is left out") == 1


def test_a_file_may_be_named_in_tools_as_well(write):
    write("shout", "one")
    agent = watching(use("shout", {}), "a", use("shout", {}), "b", tools=["./tools/shout.py"])
    assert agent.tool_names == ["shout"]

    agent("go")
    write("shout", "two")
    agent("go on")
    assert said(agent) == ["one", "two"]


def test_two_files_with_one_tool_name_are_an_error(write):
    write("shout")
    write("shout", file="again")

    with pytest.raises(ToolDefinitionError, match="'shout' is taken"):
        watching()


def test_modules_with_a_spec_are_watched_too(folder, write):
    source = (
        'TOOL_SPEC = {{"name": "{name}", "inputSchema": {{"type": "object"}}}}\ndef {name}(tool): return "{says}"\n'
    )
    write("shout", "one", source=source)
    agent = watching(use("shout", {}), "a", use("shout", {}), "b")

    agent("go")
    write("shout", "two", source=source)
    agent("go on")
    assert said(agent) == ["one", "two"]


def test_a_copy_of_the_agent_is_up_to_date(write):
    write("shout", "one")
    write("gone")
    agent = watching(use("shout", {}), "a")
    write("shout", "two")
    write("gone", source="WORD = 1\n")
    copy = agent.clone()
    copy("go")

    assert (said(copy), copy.tool_names, agent.tool_names) == (["two"], ["shout"], ["gone", "shout"])


def test_the_working_directory_of_the_construction_counts(write, folder, tmp_path_factory, monkeypatch):
    write("shout", "one")
    agent = watching(use("shout", {}), "a")
    write("shout", "two")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    agent("go")
    assert said(agent) == ["two"]


def test_other_values_are_refused(folder):
    with pytest.raises(PluginError, match="load_tools_from_directory"):
        Agent(model=ScriptedModel([]), load_tools_from_directory="./tools", callback_handler=None)


def test_without_the_plugin_the_parameter_says_what_to_do(folder):
    with pytest.raises((PluginError, MissingPluginError), match="tools"):
        Agent(model=ScriptedModel([]), load_tools_from_directory=True, plugins=["-tools"], callback_handler=None)


def test_an_agent_that_watches_is_freed_at_once(write):
    write("shout")
    agent = watching(use("shout", {}), "a")
    agent("go")
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(agent)
        del agent
        assert gone() is None
    finally:
        gc.enable()


def test_an_agent_that_does_not_watch_pays_nothing_in_its_runs(folder):
    plan = Agent(model=ScriptedModel([]), callback_handler=None).hooks.plan

    assert not [link for link in plan.around_tool_call if link.plugin_name.startswith("tools")]
    assert not [link for link in plan.decide_stop if link.plugin_name.startswith("tools")]
