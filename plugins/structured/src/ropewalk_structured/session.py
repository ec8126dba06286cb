"""One call that has an output model, from its first request to the filled object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final
from weakref import ref

from pydantic import ValidationError

from ropewalk.tools import error_result
from ropewalk_structured.errors import StructuredOutputException
from ropewalk_structured.problems import problem_text
from ropewalk_structured.repair import objects_in

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.model import ModelRequest
    from ropewalk.types import Message, ToolChoice, ToolResult, ToolUse
    from ropewalk_structured.target import Target

DEFAULT_PROMPT: Final = "You must format the previous response as structured output."
DEFAULT_MAX_ATTEMPTS: Final = 3

_TURN: Final = "turn"
_SHOWN: Final = 200


@final
class Session:
    """What is known about the output of one call. It is no state of the agent: it ends with the call.

    Attributes:
        target: The output model.
        prompt: Asks for the output when the model ended its turn without it.
        forced: Whether nothing but the output may come from now on.
        stop_reason: Why the model stopped last.
        purpose: What the requests say they are for.
        filled: Whether there is an output; it may be anything, also something falsy or None.
        value: The output.
    """

    __slots__ = ("_agent", "_attempts", "_given", "_judged", "_most", "_pending", "_problem", "filled", "forced",
                 "prompt", "purpose", "stop_reason", "target", "value")  # fmt: skip

    def __init__(self, agent: Agent, target: Target, prompt: str, most: int, purpose: str = _TURN) -> None:
        self._agent = ref(agent)  # a context may outlive the call in what the call has scheduled
        self._most = most
        self._attempts = 0
        self._problem = ""
        self._pending: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._given: dict[str, Any] | None = None
        self._judged = ""
        self.target = target
        self.prompt = prompt
        self.forced = purpose != _TURN  # a question beside the conversation is for the output alone
        self.purpose = purpose
        self.stop_reason = ""
        self.filled = False
        self.value: Any = None

    def belongs_to(self, agent: Agent) -> bool:
        """Whether it is this agent's call; a sub-agent runs in the context of its parent's."""
        return self._agent() is agent

    # -- what is asked -------------------------------------------------------------------------------------------

    def request(self, request: ModelRequest, *, native: bool) -> ModelRequest:
        """The request with the output model in it.

        Args:
            request: As the agent makes it.
            native: Whether the model can be held to a schema.
        """
        target = self.target
        if not self.forced:
            if any(spec["name"] == target.name for spec in request.tool_specs):  # an attempt repeated by a hook
                return request

            return replace(request, tool_specs=(*request.tool_specs, target.spec))

        forced = replace(request, tool_specs=(), tool_choice=None, output_schema=target.schema, purpose=self.purpose)
        if native:
            return forced

        choice: ToolChoice = {"tool": {"name": target.name}}
        return replace(forced, tool_specs=(target.spec,), tool_choice=choice, output_schema=None)

    # -- what is answered ----------------------------------------------------------------------------------------

    def hold(self, use_id: str, given: dict[str, Any]) -> ToolResult:
        """Validates a call of the tool; what fits is kept until the whole message is answered."""
        problem = self._try(use_id, given)
        if problem is not None:
            return error_result(use_id, problem)

        text = f"{self.target.name} is complete and valid."
        return {"toolUseId": use_id, "status": "success", "content": [{"text": text}]}

    def settle(self, uses: Sequence[ToolUse], results: Sequence[ToolResult]) -> None:
        """Takes the first valid call of a message, in its order; none is one attempt more."""
        pending, self._pending = self._pending, {}
        answered = {result["toolUseId"]: result for result in results}
        problem: str | None = None
        for use in uses:
            use_id = use["toolUseId"]
            result = answered.get(use_id)
            if result is None:
                continue

            if use_id in pending and result["status"] == "success":  # it may have been renamed on its way
                self._accept(*pending[use_id])
                return

            if use["name"] == self.target.name:
                problem = "\n".join(piece["text"] for piece in result["content"] if "text" in piece)

        if problem is None and self.forced:
            problem = f"it asked for other tools ({', '.join(use['name'] for use in uses)})"

        message = uses[0]["toolUseId"] if uses else ""
        if problem is not None and message != self._judged:  # or it was judged before a pause
            self._judged = message
            self.fail(problem or "its call was answered with an error")

    def answer(self, use: ToolUse, input_error: str | None) -> ToolResult:
        """Answers a tool use where no tool runs."""
        if use["name"] != self.target.name:
            return error_result(use["toolUseId"], f"Unknown tool: {use['name']}. Use {self.target.name}.")

        if input_error is not None:
            return error_result(use["toolUseId"], f"Error: {input_error}. Send the arguments as one JSON object.")

        return self.hold(use["toolUseId"], use["input"])

    def take_text(self, message: Message) -> str | None:
        """Takes the first valid JSON object in the text of a forced answer.

        Returns:
            What is wrong, for the model to correct; None when there is an output now.

        Raises:
            StructuredOutputException: The text has no object, or there were too many attempts.
        """
        text = "\n".join(block["text"] for block in message["content"] if "text" in block)
        problem: str | None = None
        for given in objects_in(text):
            found = self._try("", given)
            if found is None:
                self._accept(*self._pending.pop(""))
                return None

            problem = problem or found

        if problem is None:
            said = f"it answered {text.strip()[:_SHOWN]!r}" if text.strip() else "its answer was empty"
            raise StructuredOutputException(self.target.name, f"{said} in place of structured output", self._attempts)

        self.fail(problem)
        self.check()
        return problem

    def _try(self, use_id: str, given: dict[str, Any]) -> str | None:
        try:
            self._pending[use_id] = (self.target.validate(given), given)
        except ValidationError as error:
            return problem_text(self.target.name, error)
        except Exception as error:  # noqa: BLE001 - a validator of the user's may raise anything
            return f"Validation failed for {self.target.name}. Please fix this: {type(error).__name__}: {error}"

        return None

    def _accept(self, value: Any, given: dict[str, Any]) -> None:
        self.filled, self.value, self._given = True, value, given

    def fail(self, problem: str) -> None:
        """Counts an answer that did not fit."""
        self._attempts += 1
        self._problem = problem

    def check(self) -> None:
        """Ends the corrections when there were too many.

        Raises:
            StructuredOutputException: With the last problem.
        """
        if self._attempts >= self._most and not self.filled:
            raise StructuredOutputException(self.target.name, self._problem, self._attempts)

    # -- across a pause ------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What the call needs to go on after a pause, as JSON: the answers in place of the objects made from them."""
        return {
            "model": self.target.name,
            "prompt": self.prompt,
            "forced": self.forced,
            "stop_reason": self.stop_reason,
            "attempts": self._attempts,
            "problem": self._problem,
            "judged": self._judged,
            "pending": {use_id: given for use_id, (_, given) in self._pending.items()},
            "given": self._given,
        }

    def restore(self, kept: dict[str, Any]) -> None:
        """Takes up what `to_dict` gave."""
        self.forced, self.stop_reason = kept["forced"], kept["stop_reason"]
        self._attempts, self._problem, self._judged = kept["attempts"], kept["problem"], kept["judged"]
        for use_id, given in kept["pending"].items():
            self._try(use_id, given)

        if kept["given"] is not None and self._try("", kept["given"]) is None:
            self._accept(*self._pending.pop(""))


_current: ContextVar[Session | None] = ContextVar("ropewalk_structured", default=None)


@contextmanager
def current(session: Session | None) -> Iterator[None]:
    """Makes the session the one of the hooks that are called inside."""
    token = _current.set(session)
    try:
        yield
    finally:
        _current.reset(token)


def session_of(agent: Agent) -> Session | None:
    """The session of the agent's call under way; None when it has no output model."""
    session = _current.get()
    return session if session is not None and session.belongs_to(agent) else None
