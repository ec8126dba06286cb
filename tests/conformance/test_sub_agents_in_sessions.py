"""Sub-agents of agents that have sessions (conformance 68, 106)."""

from __future__ import annotations

import shutil

import pytest

from ropewalk import Agent, ToolContext, tool
from ropewalk_session_file import FileSessionManager
from ropewalk_testing import ScriptedModel, assert_valid_history, use


def tool_texts(agent):
    blocks = [block for message in agent.messages for block in message["content"] if "toolResult" in block]
    return [block["toolResult"]["content"][0]["text"] for block in blocks]


@pytest.fixture
def build(tmp_path):
    """Builds the agent of a session with its sub-agent, as each process of an application does."""

    def make(turns, child_turns, tools, folder="sessions"):
        child = Agent(model=ScriptedModel(child_turns), name="scout", tools=tools, callback_handler=None)
        manager = FileSessionManager(session_id="s", storage_dir=tmp_path / folder)
        return Agent(model=ScriptedModel(turns), tools=[child], session_manager=manager, callback_handler=None)

    return make


def test_a_sub_agent_with_a_session_must_keep_its_conversation(tmp_path):
    """Conformance 68."""
    manager = FileSessionManager(session_id="s", storage_dir=tmp_path)
    child = Agent(model=ScriptedModel([]), name="scout", session_manager=manager, callback_handler=None)

    with pytest.raises(ValueError, match="preserve_context=True"):
        child.as_tool()

    assert child.as_tool(preserve_context=True).tool_name == "scout"


def test_the_question_of_a_sub_agent_is_answered_in_another_process(build):
    """Conformance 106."""
    heard = []

    @tool(context=True)
    def book(tool_context: ToolContext) -> str:
        heard.append(tool_context.interrupt("approve"))
        return "booked"

    first = build([use("scout", {"input": "book it"}, id="T1")], [use("book", {}, id="C1")], [book])
    (question,) = first("go").interrupts
    first.close()

    second = build(["done"], ["I booked it"], [book])
    result = second([{"interruptResponse": {"interruptId": question.id, "response": "yes"}}])

    assert (str(result), heard, tool_texts(second)) == ("done\n", ["yes"], ["I booked it"])
    assert_valid_history(second.messages)


@pytest.mark.parametrize("cut_in", ["second", "third"])
def test_a_sub_agent_goes_on_when_its_process_has_ended(build, tmp_path, cut_in):
    ran = []

    def work(name):
        @tool(name=name)
        def body() -> str:
            """Works."""
            ran.append(name)
            if name == cut_in and not (tmp_path / "cut").exists():  # what another process would find now
                shutil.copytree(tmp_path / "sessions", tmp_path / "cut")

            return f"did {name}"

        return body

    tools = [work(name) for name in ("first", "second", "third")]
    turns = [use(name, {}, id=name) for name in ("first", "second", "third")]
    first = build([use("scout", {"input": "go"}, id="T1"), "done"], [*turns, "all done"], tools)
    first("go")
    first.close()
    assert ran == ["first", "second", "third"]

    after = turns[ran.index(cut_in) + 1 :]
    ran.clear()
    second = build(["done"], [*after, "all done"], tools, "cut")
    result = second(None)

    assert str(result) == "done\n"
    assert ran == [use_["toolUse"]["name"] for use_ in after]
    assert tool_texts(second) == ["all done"]
    assert_valid_history(second.messages)
