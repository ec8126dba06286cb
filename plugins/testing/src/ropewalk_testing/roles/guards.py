"""What everybody keeps who intervenes: policies and handlers."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from ropewalk import ModelOutcome, ModelRequest, hookimpl
from ropewalk.kits.calls.copies import plain_copy
from ropewalk.kits.calls.invocation import CallOptions, Invocation
from ropewalk.kits.calls.verdicts import Guide, Refuse, Replace
from ropewalk_testing.roles.common import Probe, Role, make_agent, results_of, run, texts_of, within
from ropewalk_testing.turns import use


class _Swaps:
    """A hook that puts another tool, or other arguments, in the place of what the model asked for."""

    name = "swaps"
    order = -1_000

    def __init__(self, tool: Any, given: dict[str, Any]) -> None:
        self.tool, self.given = tool, given

    @hookimpl(tryfirst=True)
    async def around_tool_call(self, call: Any, call_next: Any) -> Any:
        """Swaps."""
        return await call_next(call.with_tool(self.tool).with_input(self.given))


class GuardConformance(Role):
    """Tests that a plugin with `intervene` passes. A subclass named `Test...` has `guard()`, and says what is denied.

    Attributes:
        denied_call: Name and input of a tool call that it refuses; None when it refuses none.
        denied_input: Text of a prompt that it refuses, before it is stored or before it is sent.
        denied_answer: Text of a model's answer that must not get out.
        denied_result: Text of a tool's result that must not get out.
        allowed_call: Name and input of a tool call that it lets pass as it is.
    """

    denied_call: ClassVar[tuple[str, dict[str, Any]] | None] = None
    denied_input: ClassVar[str | None] = None
    denied_answer: ClassVar[str | None] = None
    denied_result: ClassVar[str | None] = None
    allowed_call: ClassVar[tuple[str, dict[str, Any]]] = ("harmless", {})

    def guard(self) -> Any:
        """Makes the plugin; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a method guard() that makes the plugin under test")

    async def test_what_is_allowed_passes_as_it_is(self) -> None:
        """A run with a tool is the same with it and without."""
        name, given = self.allowed_call
        outcomes = []
        for plugins in ([self.guard()], []):
            tool = Probe(name)
            agent = make_agent(["first", [use(name, given, id="T1")], "done"], tools=[tool], plugins=plugins)
            outcomes.append([str(await run(agent)), str(await run(agent)), texts_of(agent), tool.started])

        assert outcomes[0] == outcomes[1]

    async def test_it_answers_verdicts(self) -> None:
        """At every gate: `Refuse`, `Replace` by another of the kind, None; `Guide` only at the model's."""
        for moment, subject, agent in self.subjects():
            verdict = await within(self.ask(self.guard(), moment, subject, agent))
            kinds = (Refuse, Replace, Guide) if moment.endswith("model_call") else (Refuse, Replace)

            assert verdict is None or isinstance(verdict, kinds), f"{verdict!r} at {moment}"
            if isinstance(verdict, Replace):
                assert isinstance(verdict.subject, type(subject))

    async def test_it_does_not_write_to_what_it_is_shown(self) -> None:
        """A change is a `Replace`, which others get to see."""
        for moment, subject, agent in self.subjects():
            before = _looks(subject)
            await within(self.ask(self.guard(), moment, subject, agent))

            assert _looks(subject) == before, f"it wrote to the subject at {moment}"

    async def test_a_denied_call_does_not_run(self) -> None:
        """It gets one error result, and the run goes on."""
        name, given = self.denied("call")
        tool = Probe(name)
        agent = make_agent([use(name, given, id="T1"), "done"], tools=[tool], plugins=[self.guard()])
        result = await run(agent)

        assert tool.started == []
        assert results_of(agent)["T1"][0] == "error"
        assert result.stop_reason == "end_turn"

    async def test_a_denied_call_does_not_run_in_the_place_of_another(self) -> None:
        """A hook that swaps tool and input comes to nothing."""
        name, given = self.denied("call")
        tool, harmless = Probe(name), Probe(self.allowed_call[0])
        swaps = _Swaps(tool, given)
        call = use(harmless.tool_name, self.allowed_call[1], id="T1")
        agent = make_agent([call, "done"], tools=[tool, harmless], plugins=[swaps, self.guard()])
        await run(agent)

        assert (tool.started, harmless.started) == ([], []), (
            f"a hook let a call of {harmless.tool_name!r} run {name!r}: judge call.tool, which runs, not call.tool_use"
        )

    async def test_a_denied_call_does_not_run_directly(self) -> None:
        """As `agent.tool.name(...)`."""
        name, given = self.denied("call")
        tool = Probe(name)
        agent = make_agent(["unused"], tools=[tool], plugins=[self.guard()])
        result = await asyncio.to_thread(lambda: getattr(agent.tool, name)(**given))

        assert (tool.started, result["status"]) == ([], "error")

    async def test_a_denied_prompt_is_not_sent(self) -> None:
        """The model never sees it."""
        text = self.denied("input")
        agent = make_agent(["never"], plugins=[self.guard()])
        result = await run(agent, text)

        assert text not in str(agent.model.requests)
        assert "never" not in str(result)

    async def test_a_denied_answer_does_not_get_out(self) -> None:
        """Neither to the caller nor into the history, and no tool that it asks for runs."""
        text = self.denied("answer")
        tool = Probe(self.allowed_call[0])
        turns = [[text, use(tool.tool_name, self.allowed_call[1], id="T1")], "fine", "fine"]
        agent = make_agent(turns, tools=[tool], plugins=[self.guard()])
        result = await run(agent)

        assert text not in str(result) + texts_of(agent)
        assert tool.started == []

    async def test_a_denied_result_does_not_get_out(self) -> None:
        """The model is not told of it."""
        text = self.denied("result")
        name, given = self.allowed_call
        agent = make_agent([use(name, given, id="T1"), "done"], tools=[_Says(name, text)], plugins=[self.guard()])
        await run(agent)

        assert text not in texts_of(agent) + str(agent.model.requests)

    async def test_one_guard_serves_two_agents_at_once(self) -> None:
        """What it refuses one says nothing of the other."""
        name, given = self.denied("call")
        guard, (allowed, harmless) = self.guard(), self.allowed_call
        tools = [Probe(name), Probe(allowed)]
        bad = make_agent([use(name, given, id="T1"), "done"], tools=[tools[0]], plugins=[guard])
        good = make_agent([use(allowed, harmless, id="T1"), "done"], tools=[tools[1]], plugins=[guard])
        await asyncio.gather(run(bad), run(good))

        assert [tool.started for tool in tools] == [[], ["T1"]]

    # -- their parts -----------------------------------------------------------------------------------------------

    def denied(self, what: str) -> Any:
        """What the subclass says of something that is denied; the test is left out when it says nothing."""
        value = getattr(self, f"denied_{what}")
        if value is None:
            pytest.skip(f"it denies no {what} (no denied_{what})")

        return value

    async def ask(self, guard: Any, moment: str, subject: Any, agent: Any) -> Any:
        """What the plugin's own `intervene` answers; it takes any subset of the hook's arguments."""
        import inspect

        given = {"moment": moment, "subject": subject, "agent": agent}
        wanted = inspect.signature(guard.intervene).parameters
        return await guard.intervene(**{name: given[name] for name in wanted})

    def subjects(self) -> list[tuple[str, Any, Any]]:
        """A subject for each gate, with the agent that it belongs to."""
        name, given = self.denied_call or self.allowed_call
        agent = make_agent(["unused"], tools=[Probe(name)])
        message: Any = {"role": "user", "content": [{"text": self.denied_input or "Hello."}]}
        answer = ModelOutcome({"role": "assistant", "content": [{"text": self.denied_answer or "Hello."}]}, "end_turn")
        result: Any = {"toolUseId": "T1", "status": "success", "content": [{"text": self.denied_result or "Hello."}]}
        return [
            ("before_invocation", Invocation((message,), CallOptions("Hello.", {})), agent),
            ("before_model_call", ModelRequest([message], tool_specs=agent.tool_registry.specs), agent),
            ("after_model_call", answer, agent),
            ("before_tool_call", _call(agent, name, given), agent),
            ("after_tool_call", result, agent),
        ]


class _Says(Probe):
    """A tool that says one text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self._text = text

    async def invoke(self, call: Any) -> Any:
        """Says it."""
        return {**await super().invoke(call), "content": [{"text": self._text}]}


class _Stub:
    """As much of a run as a guard may look at."""

    def __init__(self, agent: Any) -> None:
        self.agent, self.id = agent, "run_1"
        self.invocation_state: dict[str, Any] = {}
        self.direct, self.memos, self.answers, self.errors = False, {}, {}, {}  # type: ignore[var-annotated]

    def interrupt(self, name: str, *_: Any, **__: Any) -> Any:
        """Nobody answers here."""
        raise RuntimeError(f"the guard asks {name!r}")


def _call(agent: Any, name: str, given: dict[str, Any]) -> Any:
    from ropewalk.tools import ToolCall

    run: Any = _Stub(agent)
    return ToolCall(run, {"toolUseId": "T1", "name": name, "input": plain_copy(given)}, agent.tool_registry.get(name))


def _looks(subject: Any) -> Any:
    """All that can be seen of a subject, as a copy."""
    names = ("messages", "system", "message", "stop_reason", "tool_use", "tool", "resumed")
    parts = subject if isinstance(subject, dict) else {n: getattr(subject, n) for n in names if hasattr(subject, n)}
    return {name: value if name == "tool" else plain_copy(value) for name, value in parts.items()}
