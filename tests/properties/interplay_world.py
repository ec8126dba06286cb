"""What the test of any interplay draws, and the world that an agent lives in."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from ropewalk import (
    ConcurrencyException,
    ContextWindowOverflowException,
    InvalidPromptError,
    MaxTokensReachedException,
    MissingPluginError,
    ModelError,
    ModelThrottledException,
    ResumeError,
    SlidingWindowConversationManager,
    StructuredOutputException,
    SummarizingConversationManager,
)
from ropewalk.kits.sessions import SessionException
from ropewalk_testing import assert_valid_history, text, turn, use


class Form(BaseModel):
    """What structured output fills."""

    name: str


class UnluckyError(RuntimeError):
    """What hooks raise here."""


class Outcomes:
    """What a call may raise in this test."""

    REFUSED = (ResumeError, InvalidPromptError, ConcurrencyException, MissingPluginError)
    FAILED = (UnluckyError, ModelError, MaxTokensReachedException, StructuredOutputException, SessionException)
    ALL = (*REFUSED, *FAILED)


# -- what is drawn -------------------------------------------------------------------------------------------------

MANAGERS = {
    "none": dict,
    "small window": lambda: {"conversation_manager": SlidingWindowConversationManager(window_size=3, per_turn=True)},
    "summaries": lambda: {
        "conversation_manager": SummarizingConversationManager(
            summary_ratio=0.8, preserve_recent_messages=2, proactive_compression={"compression_threshold": 0.05}
        )
    },
    "auto": lambda: {"context_manager": "auto"},
    "agentic": lambda: {"context_manager": "agentic"},
}
POINTS = ["invocation", "model", "tools", "call"]
TOOLS = ["plain", "pure", "slow", "asks", "asks_late", "fails", "remembers", "big", "helper", "keeper"]
TURNS = ["text", "tools", "tools", "tools", "throttle", "overflow", "error", "cut", "max_tokens", "redact", "form"]
LUCK = ["pass"] * 8 + ["raise before", "raise after", "again", "deny", "end the turn", "cancel", "ask", "ask after"]
DEEDS = [
    "prompt", "prompt", "cancel", "stop", "leave", "some answers", "wrong answers", "reopen", "crash", "cut", "cut",
    "direct call", "two at once", "failing write", "snapshot", "state",
]  # fmt: skip

FEATURES = st.fixed_dictionaries(
    {
        "manager": st.sampled_from(sorted(MANAGERS)),
        "in a row": st.booleans(),
        "checkpointing": st.sampled_from([False, False, True]),
        "structured": st.sampled_from([False, False, True]),
        "reentrant": st.sampled_from([False, False, True]),
        "keep_last": st.sampled_from([None, None, 1]),
        "turns": st.sampled_from([None, None, 2]),
        "asks before": st.lists(st.sampled_from(POINTS), max_size=2, unique=True),
        "asks after": st.lists(st.sampled_from(POINTS), max_size=2, unique=True),
    }
)
SAID = st.lists(
    st.tuples(st.sampled_from(TURNS), st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)), max_size=10
)
STEPS = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 40)), min_size=1, max_size=6)


class World:
    """What outlives an agent: what its model will say, what its hooks will do, and what its tools have done."""

    def __init__(self, features: dict[str, Any], said: list[Any], helper: list[Any], luck: list[str]) -> None:
        self.features, self.luck = features, list(luck)
        self.said = {"outer": list(said), "helper": list(helper)}
        self.done: list[tuple[str, int]] = []
        self.begun: list[tuple[str, int, str]] = []
        self.problems: list[str] = []
        self.numbers = itertools.count()
        self.prompts = itertools.count()

    def beside(self) -> World:
        """The same world for another agent; nothing is done in it yet."""
        other = World(self.features, self.said["outer"], self.said["helper"], self.luck)
        other.numbers = itertools.count(10_000)
        return other

    def turn(self, who: str, request: Any) -> Any:
        """What a model says to a request."""
        try:
            assert_valid_history(list(request.messages))
        except AssertionError as error:
            self.problems.append(f"the {who} model got: {error}")

        form = any(spec["name"] == "Form" for spec in request.tool_specs)
        if request.purpose != "turn" or not self.said[who]:
            return self.use("Form") if request.tool_choice is not None else "the end"

        kind, tools = self.said[who].pop(0)
        uses = [self.use(name) for name in tools]
        return {
            "tools": uses,
            "throttle": ModelThrottledException("slow down"),
            "overflow": ContextWindowOverflowException("too long"),
            "error": ModelError("down"),
            "cut": turn(uses[0], cut=True),
            "max_tokens": turn(text("half"), uses[0], stop="max_tokens"),
            "redact": turn(raw=[
                {"messageStart": {"role": "assistant"}},
                {"redactContent": {"redactUserContentMessage": "[gone]"}},
                {"contentBlockDelta": {"delta": {"text": "no"}, "contentBlockIndex": 0}},
                {"messageStop": {"stopReason": "guardrail_intervened"}},
            ]),
            "form": self.use("Form") if form else "no form",
        }.get(kind, "an answer")  # fmt: skip

    def use(self, name: str) -> Any:
        given = {"Form": {"name": "x"}, "helper": {"input": "help"}, "keeper": {"input": "help"}}.get(name, {})
        return use(name, given, id=f"u{next(self.numbers)}")


def answer_to(name: str) -> Any:
    """The answer to a question; it tells whose it is, and some are falsy."""
    return [{"to": name}, None, False, f"to {name}"][len(name) % 4]


def heard(world: World, name: str, answer: Any) -> None:
    if answer != answer_to(name):
        world.problems.append(f"who asked {name!r} heard {answer!r}")
