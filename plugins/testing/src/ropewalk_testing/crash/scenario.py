"""The run that is killed: tools of every effect, sub-agents, questions, a checkpoint, a retry, a compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ropewalk import (
    Agent,
    AgentResult,
    ContextRequest,
    HistoryEdit,
    ModelRequest,
    ModelThrottledException,
    ToolBatch,
    current_run,
    hookimpl,
)
from ropewalk_testing.crash.script import SUMMARISE, Script, Turn
from ropewalk_testing.crash.tools import JournalTool
from ropewalk_testing.scripted import ScriptedModel

if TYPE_CHECKING:
    from ropewalk import Denied, Failure, Interrupt, Invocation, ToolCall, ToolResult
    from ropewalk.run import Run
    from ropewalk.types import Effect
    from ropewalk_testing.crash.effects import EffectJournal

BEGIN: Final = "Please begin."
GO_ON: Final = "Go on."
FINISH: Final = "Finish it."
EFFECTS: Final[tuple[Effect, ...]] = ("pure", "idempotent", "irreversible")
PLUGIN: Final = "crash-scenario"
SUBAGENT: Final = "sub"
"""How the tool-use ids of sub-agents begin."""

LOOKED_UP: Final = "looked up: it was done"


@dataclass(frozen=True)
class Scenario:
    """What the agent under test does. Subclass it, or write another class with these methods, for other runs.

    Attributes:
        parallel: Tools that run at once in one message; pure, idempotent and irreversible in turn.
        sequential: Irreversible tools that run one after the other in one message.
        subagents: Sub-agents in one message, each with tools of its own; needs the plugin `subagents`.
        interrupt: Whether a tool asks first, beside one that does not.
        ask: Whether there is a tool of which the caller is asked what became of it (`on_unknown="ask"`).
        checkpoint: Whether the second run pauses at a checkpoint.
        retry: Whether the first attempt at two model calls fails.
        compaction: Whether the third run begins with a summary in the place of the first two.
        once: Whether a hook has an effect of its own, by `run.once`.
        plugins: More plugins, by name, for the agent.
        retention: How much the session keeps; None for all.
    """

    parallel: int = 3
    sequential: int = 3
    subagents: int = 0
    interrupt: bool = True
    ask: bool = True
    checkpoint: bool = True
    retry: bool = True
    compaction: bool = True
    once: bool = True
    plugins: tuple[str, ...] = ()
    retention: Any = field(default=None)

    @property
    def prompts(self) -> tuple[str, ...]:
        """What the agent is asked, one run each; every prompt is another text."""
        return tuple(self.plan())

    def plan(self) -> dict[str, list[Turn]]:
        """The turns of the model, per prompt."""
        begin: list[Turn] = [self._names("at_once", self.parallel), self._names("in_a_row", self.sequential)]
        go_on: list[Turn] = [self._names("helper", self.subagents)]
        go_on += [("quick", "asks"), ("quick",)] if self.interrupt else [("quick",)]
        finish: list[Turn] = [("quick", "looked_after") if self.ask else ("quick",)]
        parts = {BEGIN: [*begin, "It is begun."], GO_ON: [*go_on, "It goes on."], FINISH: [*finish, "It is done."]}
        return {prompt: [turn for turn in turns if turn] for prompt, turns in parts.items()}

    def agent(self, session_manager: Any, journal: EffectJournal) -> Agent:
        """The agent under test, built anew in each process.

        Args:
            session_manager: Keeps its log.
            journal: Where tools note what they did.
        """
        fails = frozenset({(0, 1), (2, 0)}) if self.retry else frozenset()
        script = Script(self.plan(), "use", fails, lambda: ModelThrottledException("slow down"))
        tools: list[Any] = [
            *(JournalTool(f"at_once_{n}", EFFECTS[n % 3], journal) for n in range(self.parallel)),
            *(JournalTool(f"in_a_row_{n}", "irreversible", journal) for n in range(self.sequential)),
            JournalTool("quick", "idempotent", journal),
            JournalTool("asks", "irreversible", journal, question="may_i"),
            JournalTool("looked_after", "irreversible", journal, on_unknown="ask"),
            *(self.subagent(number, journal) for number in range(self.subagents)),
        ]
        return Agent(
            model=ScriptedModel(script, record=False),
            tools=tools,
            session_manager=session_manager,
            plugins=[*self.plugins, ScenarioPlugin(self, journal)],
            callback_handler=None,
        )

    def subagent(self, number: int, journal: EffectJournal) -> Any:
        """One sub-agent, as a tool."""
        plan: dict[str, list[Turn]] = {"": [("safe", "risky"), ("risky",), f"Helper {number} is done."]}
        agent = Agent(
            model=ScriptedModel(_Sub(plan, f"{SUBAGENT}{number}"), record=False),
            tools=[JournalTool("safe", "idempotent", journal), JournalTool("risky", "irreversible", journal)],
            name=f"helper_{number}",
            plugins=["subagents"],
            callback_handler=None,
        )
        return agent.as_tool()

    def answer(self, interrupt: Interrupt) -> Any:
        """The answer to a question."""
        return {"result": LOOKED_UP} if interrupt.name == "outcome_unknown" else True

    def may_stay_unknown(self, tool: str, effect: str) -> bool:
        """Whether the outcome of a call that was cut off may be unknown in the history."""
        return effect == "irreversible" and not tool.startswith("helper")

    @staticmethod
    def _names(word: str, count: int) -> tuple[str, ...]:
        return tuple(f"{word}_{number}" for number in range(count))


class _Sub(Script):
    """A sub-agent's script: whatever it is asked is its one prompt."""

    def _place(self, texts: list[str], content: Any) -> tuple[int, int]:  # noqa: ARG002 - as in the base
        return super()._place([], content) if any("toolResult" in block for block in content) else (0, 0)


class ScenarioPlugin:
    """The hooks of the scenario."""

    name = PLUGIN

    def __init__(self, scenario: Scenario, journal: EffectJournal) -> None:
        self._scenario = scenario
        self._journal = journal

    @hookimpl
    async def around_invocation(
        self, invocation: Invocation, call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]]
    ) -> AgentResult | Denied:
        """Has effects of its own, once per run."""
        run = current_run()
        await self._once(run, "begun")
        result = await call_next(invocation)
        if run.paused is None:
            await self._once(run, "told")

        return result

    async def _once(self, run: Run, word: str) -> None:
        if self._scenario.once:
            await run.once(word, lambda: self._journal.note(word, f"{word}:{run.id}", run.id, "once"))

    @hookimpl
    async def execute_tools(
        self, batch: ToolBatch, run_tool: Callable[[ToolCall], Awaitable[ToolResult]]
    ) -> list[ToolResult] | None:
        """Runs the calls at once, except those that are to run in a row."""
        if any(call.tool_use["name"].startswith("in_a_row") for call in batch.calls):
            return None

        ended = await asyncio.gather(*(run_tool(call) for call in batch.calls), return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException):
                raise each

        return list(ended)  # type: ignore[arg-type]  # errors were raised

    @hookimpl
    async def around_tool_call(
        self, call: ToolCall, call_next: Callable[[ToolCall], Awaitable[ToolResult]], agent: Agent
    ) -> ToolResult:
        """Keeps state of its own."""
        agent.plugin_state(PLUGIN).set(call.tool_use["toolUseId"], "seen")
        return await call_next(call)

    @hookimpl
    async def decide_retry(self, failure: Failure) -> float | None:
        """Repeats at once."""
        return 0.0 if isinstance(failure.error, ModelThrottledException) else None

    @hookimpl
    async def emit_checkpoint(self, position: str, cycle_index: int, agent: Agent) -> dict[str, Any] | None:
        """Pauses the second run before and after its first tools."""
        if not self._scenario.checkpoint or cycle_index != 0 or _last_prompt(agent.messages) != GO_ON:
            return None

        return {"position": position}

    @hookimpl
    async def resume_run(self) -> bool:
        """Goes on from there."""
        return True

    @hookimpl
    async def manage_context(self, request: ContextRequest, reason: str) -> list[HistoryEdit] | None:
        """Puts a summary in the place of what came before the third prompt."""
        messages, ids = request.messages, request.ids
        texts = [block.get("text") for block in messages[-1]["content"]] if messages else []
        if not self._scenario.compaction or reason != "before_model" or FINISH not in texts:
            return None

        if "Summary." in [block.get("text") for block in messages[0]["content"]]:
            return None

        asked = ModelRequest([{"role": "user", "content": [{"text": SUMMARISE}]}])
        outcome = await current_run().ask_model(asked, "summary")
        summary: Any = ({"role": "user", "content": [{"text": "Summary."}]}, outcome.message)
        return [HistoryEdit(ids[0], ids[-2], summary, "summed up")]


def _last_prompt(messages: Any) -> str | None:
    for message in reversed(messages):
        for block in message["content"]:
            if block.get("text") in (BEGIN, GO_ON, FINISH):
                return str(block["text"])

    return None
