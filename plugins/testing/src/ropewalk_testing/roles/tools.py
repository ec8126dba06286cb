"""What every tool keeps."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any, ClassVar, get_args

import pytest

from ropewalk.kits.messages.results import checked_result
from ropewalk.kits.messages.rules import is_legal_tool_name
from ropewalk.kits.tool_registry import is_tool
from ropewalk.tools import ToolCall
from ropewalk.types import Effect, OnUnknown, ToolResult
from ropewalk_testing.roles.common import AtOnce, Role, ended, make_agent, results_of, run, until
from ropewalk_testing.turns import use


class _Spy:
    """Stands before a tool, and keeps what it is given and what it gives, as it is."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool
        self.tool_name, self.tool_spec = tool.tool_name, tool.tool_spec
        self.given: list[tuple[Any, Any]] = []
        self.answers: list[Any] = []
        self.began = 0

    async def invoke(self, call: ToolCall) -> ToolResult:
        self.began += 1
        self.given.append((call.tool_use, copy.deepcopy(call.tool_use)))
        answer: ToolResult = await self.tool.invoke(call)
        self.answers.append(answer)
        return answer


class ToolConformance(Role):
    """Tests that a tool passes. A subclass named `Test...` has a fixture `tool` and says with which input it works.

    Attributes:
        input: An input with which it succeeds.
        wrong: One that it cannot use, which is an error result; None when it takes everything.
        slow: One with which it takes until it is cancelled; None when there is none.
    """

    input: ClassVar[dict[str, Any]] = {}
    wrong: ClassVar[dict[str, Any] | None] = None
    slow: ClassVar[dict[str, Any] | None] = None

    @pytest.fixture
    def tool(self) -> Any:
        """Makes the tool; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a fixture `tool` that makes the tool under test")

    def test_models_can_be_told_of_it(self, tool: Any) -> None:
        """A legal name, a description, a schema of an object; strict JSON, and the same each time."""
        spec = tool.tool_spec
        schema = spec["inputSchema"]["json"]

        assert is_tool(tool)
        assert is_legal_tool_name(tool.tool_name)
        assert spec["name"] == tool.tool_name
        assert spec["description"].strip()
        assert schema["type"] == "object"
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert tool.tool_spec == spec

    def test_what_a_crash_means_for_it_is_one_of_the_known(self, tool: Any) -> None:
        """`effect` and `on_unknown`, where it has them."""
        assert getattr(tool, "effect", "irreversible") in get_args(Effect)
        assert getattr(tool, "on_unknown", None) in (None, *get_args(OnUnknown))

    async def test_its_answer_is_a_tool_result(self, tool: Any) -> None:
        """Of the call's id, with a status and a list of content blocks, strict JSON but for bytes."""
        spy = _Spy(tool)
        agent = make_agent([use(tool.tool_name, self.input, id="T1"), "done"], tools=[spy])
        await run(agent)
        answer = spy.answers[0]

        assert set(answer) == {"toolUseId", "status", "content"}
        assert answer == checked_result(answer, agent.messages[1]["content"][0]["toolUse"])
        assert (answer["toolUseId"], answer["status"]) == ("T1", "success"), f"it refused {self.input}: {answer}"
        assert all(isinstance(block, dict) and len(block) == 1 for block in answer["content"])
        assert results_of(agent)["T1"] == ("success", answer["content"])

    async def test_its_input_is_not_written_to(self, tool: Any) -> None:
        """It is the history's as well."""
        spy = _Spy(tool)
        await run(make_agent([use(tool.tool_name, copy.deepcopy(self.input), id="T1"), "done"], tools=[spy]))

        for given, before in spy.given:
            assert given == before

    async def test_calls_at_once_are_kept_apart(self, tool: Any) -> None:
        """Each is answered under its own id, with objects of its own."""
        spy = _Spy(tool)
        uses = [use(tool.tool_name, self.input, id=f"T{n}") for n in range(4)]
        agent = make_agent([uses, "done"], tools=[spy], plugins=[AtOnce()])
        await run(agent)

        assert sorted(answer["toolUseId"] for answer in spy.answers) == ["T0", "T1", "T2", "T3"]
        assert {status for status, _ in results_of(agent).values()} == {"success"}
        _assert_apart(spy.answers)

    async def test_an_answer_is_not_changed_by_the_next_call(self, tool: Any) -> None:
        """It is in the history by then."""
        spy = _Spy(tool)
        before: list[Any] = []

        def turns(_: Any) -> Any:
            before[:] = copy.deepcopy(spy.answers)
            return use(tool.tool_name, self.input, id=f"T{len(before)}") if len(before) < 2 else "done"  # noqa: PLR2004

        await run(make_agent(_scripted(turns), tools=[spy]))

        assert [answer["toolUseId"] for answer in before] == ["T0", "T1"]
        assert spy.answers == before
        _assert_apart(spy.answers)

    def test_one_object_serves_event_loops_in_a_row(self, tool: Any) -> None:
        """Nothing in it belongs to the loop of its first call."""
        for _ in range(2):
            agent = make_agent([use(tool.tool_name, self.input, id="T1"), "done"], tools=[tool])
            asyncio.run(run(agent))
            assert results_of(agent)["T1"][0] == "success"

    def test_it_can_be_called_directly(self, tool: Any) -> None:
        """As `agent.tool.name(...)`."""
        agent = make_agent(["unused"], tools=[tool])
        result = getattr(agent.tool, tool.tool_name)(**self.input)

        assert result["status"] == "success"

    async def test_wrong_input_is_an_error_result(self, tool: Any) -> None:
        """With a text that tells the model what is wrong; the run goes on."""
        if self.wrong is None:
            pytest.skip("it takes any input")

        agent = make_agent([use(tool.tool_name, self.wrong, id="T1"), "done"], tools=[tool])
        result = await run(agent)
        status, content = results_of(agent)["T1"]

        assert (result.stop_reason, status) == ("end_turn", "error")
        assert content[0]["text"].strip()

    async def test_cancelling_ends_it(self, tool: Any) -> None:
        """The run has an end then, and the call one result."""
        if self.slow is None:
            pytest.skip("no input makes it slow")

        spy = _Spy(tool)
        agent = make_agent([use(tool.tool_name, self.slow, id="T1"), "never"], tools=[spy])
        task = asyncio.ensure_future(run(agent))
        await until(lambda: spy.began, "the tool was not called")
        for _ in range(20):
            await asyncio.sleep(0)

        agent.cancel()
        result = await ended(task)

        assert result.stop_reason == "cancelled"
        assert results_of(agent)["T1"][0] == "error"


def _scripted(turns: Any) -> Any:
    from ropewalk_testing.scripted import ScriptedModel

    return ScriptedModel(turns)


def _assert_apart(answers: list[Any]) -> None:
    """No two answers share a dict or a list, so that nothing written to one shows in another."""
    seen: dict[int, int] = {}
    for place, answer in enumerate(answers):
        for part in (answer, answer["content"], *answer["content"]):
            assert seen.setdefault(id(part), place) == place, f"two answers share the object {part!r:.200}"
