"""google-adk: Runner and LlmAgent with in-memory sessions; DatabaseSessionService on SQLite is the store."""
# mypy: disable-error-code="import-not-found, misc"
# (the framework is in an environment of its own)

from __future__ import annotations

import logging
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from harness.driver import Driver
from harness.script import BODY, Script

_SESSION: Final = {"app_name": "app", "user_id": "u", "session_id": "s"}


@dataclass(slots=True)
class Conversation:
    """A runner and the events that its session begins with."""

    runner: Any
    prior: list[Any]
    prepared: bool = False


class GoogleADK(Driver):
    """Drives `google.adk.runners.Runner`."""

    name: ClassVar = "google_adk"
    distribution: ClassVar = "google-adk"
    import_statement: ClassVar = (
        "from google.adk.agents import LlmAgent\nfrom google.adk.runners import Runner\n"
        "from google.adk.sessions import InMemorySessionService\nfrom google.adk.models import BaseLlm, LlmResponse\n"
        "from google.genai import types"
    )

    def load(self) -> None:
        """As the base says."""
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        from google.adk.agents import LlmAgent
        from google.adk.agents.run_config import RunConfig, StreamingMode
        from google.adk.events import Event
        from google.adk.models import BaseLlm, LlmResponse
        from google.adk.runners import Runner
        from google.adk.sessions import InMemorySessionService
        from google.adk.tools import FunctionTool
        from google.genai import types as t

        class Fake(BaseLlm):
            model: str = "fake"
            script: Any = None

            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
                del llm_request
                await self.script.wait()
                calls = self.script.next()
                if calls is not None:
                    made = [t.FunctionCall(id=id_, name=name, args=args) for id_, name, args in calls]
                    parts = [t.Part(function_call=call) for call in made]
                    yield LlmResponse(content=t.Content(role="model", parts=parts))
                    return

                for _ in range(self.script.deltas if stream else 0):
                    yield LlmResponse(content=t.Content(role="model", parts=[t.Part(text="tok ")]), partial=True)

                whole = t.Part(text="tok " * self.script.deltas)
                yield LlmResponse(content=t.Content(role="model", parts=[whole]))

        self._agent, self._runner, self._memory = LlmAgent, Runner, InMemorySessionService
        self._event, self._types, self._tool, self._fake = Event, t, FunctionTool, Fake
        self._whole = RunConfig(max_llm_calls=10**6)
        self._pieces = RunConfig(max_llm_calls=10**6, streaming_mode=StreamingMode.SSE)

    def tools(self, functions: Sequence[Callable[..., Any]]) -> list[Any]:
        """As the base says."""
        return [self._tool(function) for function in functions]

    def model(self, script: Script) -> Any:
        """As the base says."""
        return self._fake(script=script)

    def agent(self, model: Any, tools: Sequence[Any], history: Sequence[Any] = (), store: Any = None) -> Any:
        """As the base says."""
        agent = self._agent(name="a", model=model, tools=list(tools), instruction="")
        service = self._memory() if store is None else store
        return Conversation(self._runner(app_name="app", agent=agent, session_service=service), list(history))

    async def prepare(self, agent: Any) -> None:
        """Makes the session."""
        if agent.prepared:
            return

        service = agent.runner.session_service
        if await service.get_session(**_SESSION) is None:
            await service.create_session(**_SESSION)
            if agent.prior:
                service.sessions["app"]["u"]["s"].events.extend(agent.prior)

        agent.prepared = True

    def history(self, count: int) -> list[Any]:
        """As the base says."""
        t = self._types

        def call(number: int) -> Any:
            return t.Part(function_call=t.FunctionCall(id=f"h{number}", name="t0", args={"x": 1}))

        def response(number: int) -> Any:
            result = {"result": BODY}
            return t.Part(function_response=t.FunctionResponse(id=f"h{number - 1}", name="t0", response=result))

        turn: list[tuple[str, str, Callable[[int], Any]]] = [
            ("user", "user", lambda _: t.Part(text=BODY)),
            ("a", "model", call),
            ("a", "user", response),
            ("a", "model", lambda _: t.Part(text=BODY)),
        ]
        events = []
        for number in range(count):
            author, role, part = turn[number % 4]
            events.append(self._event(author=author, content=t.Content(role=role, parts=[part(number)])))

        return events

    def _events(self, agent: Any, prompt: str, config: Any) -> AsyncIterator[Any]:
        message = self._types.Content(role="user", parts=[self._types.Part(text=prompt)])
        events: AsyncIterator[Any] = agent.runner.run_async(
            user_id="u", session_id="s", run_config=config, new_message=message
        )
        return events

    async def run(self, agent: Any, prompt: str) -> str:
        """As the base says."""
        text = ""
        async for event in self._events(agent, prompt, self._whole):
            if getattr(event, "error_code", None):
                raise RuntimeError(f"{event.error_code} {event.error_message}")

            if event.content and event.content.parts and event.content.parts[0].text:
                text = event.content.parts[0].text

        return text

    async def stream(self, agent: Any, prompt: str) -> int:
        """As the base says."""
        pieces = 0
        async for event in self._events(agent, prompt, self._pieces):
            pieces += bool(event.partial)

        return pieces

    async def open_store(self, path: str) -> Any:
        """As the base says."""
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return DatabaseSessionService(db_url=f"sqlite+aiosqlite:///{Path(path, 'adk.db')}")
