"""A handler that lets a human decide about tool calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.json_values import strict_json
from ropewalk.kits.lifecycle import BeforeToolCallEvent
from ropewalk_interventions.actions import Action, Confirm, Proceed, default_evaluate
from ropewalk_interventions.approvals import at_once
from ropewalk_interventions.asking import called
from ropewalk_interventions.classifier import model_says
from ropewalk_interventions.handler import InterventionHandler, OnError
from ropewalk_interventions.terminal import ask_on_terminal

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.interventions")

Ask: TypeAlias = Literal["stdio"] | Callable[[str], Any] | None
Classifier: TypeAlias = bool | str | Callable[[BeforeToolCallEvent], bool | Awaitable[bool]] | None
_TRUST: Final = frozenset({"t", "trust", "always"})
_STATE: Final = "interventions"


def default_evaluate_trust(response: Any) -> bool:
    """Whether an answer says that the tool is to be trusted from now on: `t`, `trust` or `always`, in any spelling."""
    return isinstance(response, str) and response.strip().casefold() in _TRUST


class HumanInTheLoop(InterventionHandler):
    """Asks a human before tools run.

    Args:
        allowed_tools: Names of tools that run without a question; `"*"` stands for all, and `"!name"` makes an
            exception, whatever else is listed.
        ask: How to ask: `"stdio"` on the terminal, a function (plain, run in a thread, or async) that gets the
            question and returns the answer, or None: the run pauses with an interrupt.
        enable_trust: Whether an answer may trust a tool: it is not asked about again in this agent, also after its
            snapshot or session is loaded.
        evaluate: Tells whether an answer is a yes; default: True, `y`, `yes`.
        evaluate_trust: Tells whether an answer is a yes that trusts the tool; default: `t`, `trust`, `always`.
        classifier: Decides whether a call that no list settles needs a human. True asks the agent's model, a text
            tells that model the rules too, a function gets the event and returns whether approval is needed. Only a
            plain no spares the question: a malformed answer, or an error, does not.
        name: Names the handler.
        on_error: See `InterventionHandler`.
        time_limit: See `InterventionHandler`; covers the waiting for an answer of `ask`.

    Raises:
        ValueError: An argument has not its form.
    """

    def __init__(
        self,
        allowed_tools: Iterable[str] = (),
        *,
        ask: Ask = None,
        enable_trust: bool = False,
        evaluate: Callable[[Any], bool] = default_evaluate,
        evaluate_trust: Callable[[Any], bool] = default_evaluate_trust,
        classifier: Classifier = None,
        name: str = "human-in-the-loop",
        on_error: OnError = "throw",
        time_limit: float | None = None,
    ) -> None:
        listed = None if isinstance(allowed_tools, str) else tuple(allowed_tools)
        if listed is None or not all(isinstance(each, str) and each for each in listed):
            raise ValueError(
                f'HumanInTheLoop(allowed_tools={allowed_tools!r:.80}): give a list of names, "*" or "!name"'
            )

        if ask is not None and ask != "stdio" and not callable(ask):
            raise ValueError(f'HumanInTheLoop(ask={ask!r:.80}): give "stdio", a function, or None for an interrupt')

        if not (classifier is None or isinstance(classifier, bool | str) or callable(classifier)):
            raise ValueError(f"HumanInTheLoop(classifier={classifier!r:.80}): give True, a text or a function")

        self.name = name
        self.on_error = on_error
        self.time_limit = time_limit
        self._listed = frozenset(listed)
        self._ask = ask
        self._trusts = enable_trust
        self._evaluate = evaluate
        self._evaluate_trust = evaluate_trust
        self._classifier = classifier

    async def before_tool_call(self, event: BeforeToolCallEvent) -> Action:
        """Proceeds with what needs no human, and asks about everything else."""
        once = getattr(event, "once", at_once)
        if not getattr(event, "answered", False):  # what was asked is not decided anew
            tool = name_of(event)
            excepted = not self._listed.isdisjoint((f"!{tool}", f"!{event.tool_use['name']}"))
            if not excepted and ("*" in self._listed or tool in self._listed):
                return Proceed("allowed")

            if self._trusts and tool in self._trusted(event.agent):
                return Proceed("trusted")

            if not excepted and self._classifier not in (None, False):
                needed = await once("classifier", partial(self._needs_human, event))
                if needed is False:
                    return Proceed("the classifier needs no human")

        prompt = question(event, trust=self._trusts)
        evaluate = partial(self._approves, event)
        if self._ask is None:
            return Confirm(prompt, evaluate=evaluate)

        response = await once("answer", partial(self._answer, prompt))
        return Confirm(prompt, False if response is None else response, evaluate)

    async def _needs_human(self, event: BeforeToolCallEvent) -> bool:
        """What the classifier says; True when it says nothing clear."""
        classifier = self._classifier
        try:
            if callable(classifier):
                needed: Any = await called(classifier, event)
            else:
                needed = await model_says(event, classifier if isinstance(classifier, str) else None)
        except Exception:
            logger.warning("the classifier of %r failed: a human is asked", self.name, exc_info=True)
            return True

        return needed is not False

    async def _answer(self, prompt: str) -> Any:
        if callable(self._ask):
            return await called(self._ask, prompt)

        return await in_thread(ask_on_terminal, prompt)

    async def _approves(self, event: BeforeToolCallEvent, response: Any) -> bool:
        if self._trusts and await at_once("", partial(self._evaluate_trust, response)):
            self._trust(event.agent, name_of(event))
            return True

        return bool(await at_once("", partial(self._evaluate, response)))

    # -- trust: the agent's, not the handler's, which may serve many ----------------------------------------------

    def _trusted(self, agent: Agent) -> list[str]:
        trusted: list[str] = agent.plugin_state(_STATE).get("trusted", {}).get(self.name, [])
        return trusted

    def _trust(self, agent: Agent, tool: str) -> None:
        cell = agent.plugin_state(_STATE)
        known = self._trusted(agent)
        if tool not in known:
            cell.set("trusted", {**cell.get("trusted", {}), self.name: [*known, tool]})


def name_of(event: BeforeToolCallEvent) -> str:
    """The name of the tool that would run: a hook may have put it behind the name that the model uses."""
    asked: str = event.tool_use["name"]
    return asked if event.selected_tool is None else event.selected_tool.tool_name


def question(event: BeforeToolCallEvent, *, trust: bool) -> str:
    """What a human is asked: the tool and its whole input, for nothing that runs may be hidden."""
    arguments = json.dumps(strict_json(event.tool_use["input"]), ensure_ascii=False)
    choices = "y/n, or t to trust the tool from now on" if trust else "y/n"
    tool, asked = name_of(event), event.tool_use["name"]
    shown = tool if tool == asked else f"{tool}, in the place of {asked},"
    return f"Run the tool {shown} with {arguments}? ({choices})"
