"""Tools: modules, dicts, nested lists, providers and the watched folder (conformance 58 to 63 and 76)."""

from __future__ import annotations

import importlib
import sys

import pytest

from ropewalk import ToolDefinitionError, ToolProvider, tool
from ropewalk_testing import use

SOURCE = '''
from ropewalk import tool


@tool
def {name}() -> str:
    """Says it."""
    return "{says}"
'''
BY_SPEC = """
TOOL_SPEC = {{"name": "{name}", "description": "Says it.", "inputSchema": {{"json": {{"type": "object"}}}}}}


def {name}(tool, **kwargs):
    content = [{{"text": "{says}"}}]
    return {{"toolUseId": tool["toolUseId"], "status": "success", "content": content}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, from which modules can be imported; what came from there is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(folder):
    def write(path, source=SOURCE, *, name="shout", says="hey"):
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(source.format(name=name, says=says))

    return write


@pytest.mark.parametrize("source", [SOURCE, BY_SPEC], ids=["decorated", "by spec"])
@pytest.mark.parametrize(
    "entry",
    [
        "shout",
        "shout:shout",
        "./shout.py",
        "shout.py:shout",
        {"path": "shout.py"},
        {"name": "shout", "path": "./shout.py"},
        [["shout.py"]],
        ({"path": "shout.py"},),
    ],
    ids=str,
)
def test_every_form_of_an_entry_loads_the_tool(ask, make_agent, tool_results, write, source, entry):
    """Conformance 58."""
    write("shout.py", source)
    agent, _ = make_agent([use("shout", {}), "ok"], tools=[entry])

    ask(agent, "go")

    assert agent.tool_names == ["shout"]
    assert tool_results(agent.messages)[0]["content"] == [{"text": "hey"}]


@pytest.mark.parametrize("source", [SOURCE, BY_SPEC], ids=["decorated", "by spec"])
def test_a_module_object_loads_its_tools(ask, make_agent, tool_results, write, source):
    """Conformance 58."""
    write("shout.py", source)
    agent, _ = make_agent([use("shout", {}), "ok"], tools=[importlib.import_module("shout")])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": "hey"}]


def test_a_name_is_looked_for_in_the_tools_folder_first(make_agent, write):
    """Conformance 58."""
    write("tools/shout.py", says="from the folder")
    write("shout.py", name="other")

    assert make_agent([], tools=["shout"])[0].tool_names == ["shout"]


@pytest.mark.parametrize("source", [SOURCE, BY_SPEC], ids=["decorated", "by spec"])
def test_a_name_that_is_not_in_the_file_is_a_value_error(make_agent, write, source):
    """Conformance 59."""
    write("shout.py", source)

    with pytest.raises(ValueError, match=r"shout\.py.*'whisper'.*'shout'"):
        make_agent([], tools=[{"name": "whisper", "path": "shout.py"}])


@pytest.mark.parametrize("name", ["has space", "名前", "a.b", "x" * 65, ""])
def test_illegal_names_are_refused_before_any_work(make_agent, write, name):
    """Conformance 62."""
    write("shout.py", BY_SPEC.replace('"name": "{name}"', '"name": ' + repr(name)))

    with pytest.raises(ToolDefinitionError):
        make_agent([], tools=["shout.py"])


@pytest.mark.parametrize(("one", "two"), [("shout", "shout"), ("shout-it", "shout_it")])
def test_names_that_clash_are_refused_wherever_they_come_from(make_agent, write, one, two):
    """Conformance 62."""
    write("shout.py", BY_SPEC.replace('"name": "{name}"', f'"name": "{one}"'))
    mine = tool(name=two)(lambda: "mine")

    for entries in (["shout.py", mine], [mine, "shout.py"], [mine, [Shelf(["shout.py"])]]):
        with pytest.raises(ValueError, match="shout"):
            make_agent([], tools=entries)


class Shelf(ToolProvider):
    """Brings entries of `tools=`."""

    def __init__(self, entries):
        self.entries = entries
        self.loads = 0
        self.added = []
        self.removed = []

    async def load_tools(self, **kwargs):
        self.loads += 1
        return self.entries

    def add_consumer(self, consumer_id, **kwargs):
        self.added.append(consumer_id)

    def remove_consumer(self, consumer_id, **kwargs):
        self.removed.append(consumer_id)


@pytest.mark.parametrize("end", ["close", "cleanup"])
def test_a_provider_is_loaded_once_and_left_at_cleanup(ask, make_agent, tool_results, end):
    """Conformance 63."""
    shelf = Shelf([tool(name="shout")(lambda: "hey")])
    agent, _ = make_agent([use("shout", {}), "ok", "more"], tools=[[shelf]])

    ask(agent, "go")
    ask(agent, "go on")

    assert tool_results(agent.messages)[0]["content"] == [{"text": "hey"}]
    assert (shelf.loads, len(shelf.added), shelf.removed) == (1, 1, [])
    getattr(agent, end)()
    assert shelf.removed == shelf.added


def test_each_agent_is_a_consumer_of_its_own(make_agent):
    """Conformance 63."""
    shelf = Shelf([tool(name="shout")(lambda: "hey")])
    with make_agent([], tools=[shelf])[0], make_agent([], tools=[shelf])[0]:
        assert len(set(shelf.added)) == 2

    assert sorted(shelf.removed) == sorted(shelf.added)


@pytest.mark.parametrize("source", [SOURCE, BY_SPEC], ids=["decorated", "by spec"])
def test_editing_a_file_in_the_tools_folder_changes_behaviour(ask, make_agent, tool_results, write, source):
    """Conformance 76."""
    write("tools/shout.py", source, says="one")
    agent, _ = make_agent(
        [use("shout", {}), "ok", use("shout", {}), "ok", use("added", {}), "ok"], load_tools_from_directory=True
    )

    ask(agent, "go")
    write("tools/shout.py", source, says="two")
    ask(agent, "go on")
    write("tools/added.py", source, name="added", says="three")
    ask(agent, "and on")

    texts = [result["content"][0]["text"] for result in tool_results(agent.messages)]
    assert texts == ["one", "two", "three"]


def test_the_tools_folder_counts_only_when_asked_for(make_agent, write):
    """Conformance 76."""
    write("tools/shout.py")

    assert make_agent([])[0].tool_names == []
    assert make_agent([], load_tools_from_directory=True)[0].tool_names == ["shout"]
