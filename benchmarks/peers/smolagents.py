"""smolagents' ToolCallingAgent. It is synchronous: its tools are the sync ones, and concurrency is threads."""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from harness.driver import Driver
from harness.script import BODY, Script


class Smolagents(Driver):
    """Drives `smolagents.ToolCallingAgent`."""

    name: ClassVar = "smolagents"
    distribution: ClassVar = "smolagents"
    sync_only: ClassVar = True
    import_statement: ClassVar = "from smolagents import ToolCallingAgent, Model, tool"
    skip: ClassVar[Mapping[str, str]] = MappingProxyType({"persist": "no session store"})

    def load(self) -> None:
        """As the base says."""
        import smolagents
        from smolagents import models as m

        def call(call_id: str, name: str, arguments: Any) -> Any:
            function = m.ChatMessageToolCallFunction(name=name, arguments=arguments)
            return m.ChatMessageToolCall(id=call_id, type="function", function=function)

        class Fake(smolagents.Model):
            def __init__(self, script: Script) -> None:
                super().__init__(model_id="fake")
                self.script = script

            def generate(self, *_: Any, **__: Any) -> Any:
                if self.script.latency:
                    time.sleep(self.script.latency)

                calls: list[Any] | None = self.script.next()
                if calls is None:
                    calls = [("final", "final_answer", {"answer": "tok " * self.script.deltas})]

                made = [call(*each) for each in calls]
                return m.ChatMessage(role=m.MessageRole.ASSISTANT, content="", tool_calls=made)

            def generate_stream(self, *_: Any, **__: Any) -> Iterator[Any]:
                self.script.next()
                for _number in range(self.script.deltas):
                    yield m.ChatMessageStreamDelta(content="tok ")

                function = m.ChatMessageToolCallFunction(name="final_answer", arguments='{"answer": "done"}')
                final = m.ChatMessageToolCallStreamDelta(index=0, id="final", type="function", function=function)
                yield m.ChatMessageStreamDelta(tool_calls=[final])

        self._smolagents, self._delta, self._fake = smolagents, m.ChatMessageStreamDelta, Fake

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._smolagents.tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return self._fake(script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        del store
        script = model.script
        agent = self._smolagents.ToolCallingAgent(
            tools=list(tools),
            model=model,
            verbosity_level=-1,
            max_steps=10**6,
            stream_outputs=script.cycles == 0 and script.deltas > 1,
        )
        agent.memory.steps.extend(history)
        agent.had_history = bool(history)
        return agent

    def history(self, count: int) -> list[Any]:
        """As the base says; three steps stand for four messages."""
        from smolagents.memory import ActionStep, TaskStep, ToolCall
        from smolagents.monitoring import Timing

        steps: list[Any] = []
        for number in range(count // 4):
            calls = [ToolCall("t0", {"x": 1}, f"h{number}")]
            timing = Timing(0, 1)
            steps.append(TaskStep(task=BODY))
            steps.append(
                ActionStep(step_number=number, timing=timing, tool_calls=calls, model_output="", observations=BODY)
            )
            steps.append(ActionStep(step_number=number, timing=timing, model_output=BODY))

        return steps

    def run_sync(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        return str(agent.run(prompt, reset=not agent.had_history))

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        return self.run_sync(agent, prompt)

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        for event in agent.run(prompt, stream=True):
            pieces += isinstance(event, self._delta) and bool(event.content)

        return pieces
