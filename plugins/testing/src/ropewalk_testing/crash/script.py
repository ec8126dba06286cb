"""What the scenario's models say: the request alone decides, so that a call that is repeated gets the same answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ropewalk_testing.turns import use

if TYPE_CHECKING:
    from ropewalk import ModelRequest
    from ropewalk_testing.turns import PlainTurn

SUMMARISE = "Summarise the conversation."

Turn: TypeAlias = "tuple[str, ...] | str"
"""The names of the tools that one answer of the model asks for, or its text."""


class Script:
    """Answers each prompt with its turns, one after the other.

    Args:
        plan: The turns per prompt.
        prefix: Begins the ids of the tool uses, which are `PREFIX-PROMPT-TURN-PLACE`, so that results tell the place.
        fails: Turns `(prompt, turn)` whose first attempt in this process fails.
        error: Makes the error.
    """

    def __init__(
        self,
        plan: Mapping[str, Sequence[Turn]],
        prefix: str,
        fails: frozenset[tuple[int, int]] = frozenset(),
        error: Any = None,
    ) -> None:
        self._plan = plan
        self._prompts = list(plan)
        self._prefix = prefix
        self._to_fail = set(fails)
        self._error = error

    def __call__(self, request: ModelRequest) -> PlainTurn:
        """The answer to a request."""
        content = request.messages[-1]["content"]
        texts = [block["text"] for block in content if "text" in block]
        if SUMMARISE in texts:
            return "They did a lot."

        prompt, turn = self._place(texts, content)
        if (prompt, turn) in self._to_fail:
            self._to_fail.discard((prompt, turn))
            return self._error()  # type: ignore[no-any-return]  # a turn that is an error

        asked = self._plan[self._prompts[prompt]][turn]
        if isinstance(asked, str):
            return asked

        inputs = [{"input": "Help me."} if name.startswith("helper") else {} for name in asked]
        return [
            use(name, given, id=f"{self._prefix}-{prompt}-{turn}-{place}")
            for place, (name, given) in enumerate(zip(asked, inputs, strict=True))
        ]

    def _place(self, texts: list[str], content: Sequence[Any]) -> tuple[int, int]:
        for number, prompt in enumerate(self._prompts):
            if prompt in texts:
                return number, 0

        for block in content:
            if "toolResult" in block:
                _, prompt_number, turn, _ = block["toolResult"]["toolUseId"].rsplit("-", 3)
                return int(prompt_number), int(turn) + 1

        raise AssertionError(f"the last message is neither a prompt of the scenario nor results: {content!r:.300}")
