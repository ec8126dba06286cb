"""The state of a paused run: plain JSON, so that another process can go on with it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from ropewalk.kits.json_values import packed, unpacked
from ropewalk.kits.suspension.errors import ResumeError
from ropewalk.kits.suspension.interrupts import Interrupt
from ropewalk.types import ToolResult

VERSION: Final = 1
_SEAL: Final = "seal"

Kind: TypeAlias = Literal["interrupt", "checkpoint", "crash"]
Position: TypeAlias = Literal["input", "cycle", "model", "answered", "tools", "after_tools", "end"]
"""Where a run is: before its input is stored, at the top of a cycle, before the model's answer is stored, after that,
before the tools' results are stored, after that, and when it has its result."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one run of a tool came to, when the hooks around it have not finished.

    Attributes:
        result: The result.
        gated: Whether it has passed the output gate.
    """

    result: ToolResult
    gated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """Where a run has stopped, and everything it has that is not in the history.

    Attributes:
        kind: `"interrupt"`: it waits for answers; `"checkpoint"`: for a resume; `"crash"`: its process ended.
        run: The run's id; it goes on under the same.
        position: Where it goes on.
        cycle: The cycle it is in, -1 before the first.
        attempt: The attempt at the model call, from 1.
        interrupts: The open questions.
        answers: Answers to questions that may be asked again, by id.
        input: The input, while it is not in the history.
        model: The model's answer, while it is not in the history, or the hooks after it have not finished.
        model_gated: Whether that answer has passed the output gate.
        finished: Results of the tool calls that are done, by tool-use id.
        effects: What tools came to whose calls are not done, by tool-use id, one entry an attempt.
        unknown: Tool uses that were started and never seen to end, with the attempt.
        memos: What paused tool calls keep, by tool-use id.
        input_errors: Tool uses whose arguments are unusable, with what is wrong.
        checkpoint: The checkpoint, as its plugin gave it.
        result: Stop reason and message, when the run has them.
        state: What hooks left for the caller.
        once: Results of `once(key, ...)`, by key.
        digest: Chained hash of the history.
        length: Messages in the history.
        tools: The tools that the open tool uses name.
        plugins: The agent's plugins that take part in runs, with their versions.
        records: Records that the run has written.
        version: Version of this shape.
    """

    kind: Kind
    run: str
    position: Position
    cycle: int = -1
    attempt: int = 1
    interrupts: tuple[Interrupt, ...] = ()
    answers: dict[str, Any] = field(default_factory=dict)
    input: list[dict[str, Any]] = field(default_factory=list)
    model: dict[str, Any] | None = None
    model_gated: bool = True
    finished: dict[str, ToolResult] = field(default_factory=dict)
    effects: dict[str, list[Effect]] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    memos: dict[str, Any] = field(default_factory=dict)
    input_errors: dict[str, str] = field(default_factory=dict)
    checkpoint: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    state: dict[str, Any] = field(default_factory=dict)
    once: dict[str, Any] = field(default_factory=dict)
    digest: str = ""
    length: int = 0
    tools: tuple[str, ...] = ()
    plugins: dict[str, str] = field(default_factory=dict)
    records: int = 0
    version: int = VERSION

    def with_answers(self, answers: dict[str, Any]) -> Suspension:
        """The same pause with some of its questions answered."""
        open_ones = tuple(each for each in self.interrupts if each.id not in answers)
        return replace(self, interrupts=open_ones, answers={**self.answers, **answers})

    def to_dict(self) -> dict[str, Any]:
        """The state as a JSON object of its own, with a seal that shows any later change."""
        plain = dict(packed(asdict(self)))
        return {**plain, _SEAL: _sealed(plain)}

    @classmethod
    def from_dict(cls, value: Any) -> Suspension:
        """The state of a JSON object that `to_dict` made.

        Raises:
            ResumeError: It is none, is of another version, or was changed.
        """
        version = value.get("version") if isinstance(value, dict) else None
        if version != VERSION:
            raise ResumeError(
                f"the paused run is of version {version!r}, and this is {VERSION}: "
                "resume it with the version of ropewalk-core that paused it"
            )

        plain = {key: item for key, item in value.items() if key != _SEAL}
        if value.get(_SEAL) != _sealed(plain):
            raise ResumeError("the paused run was changed after it had been saved: pass what was saved, unchanged")

        fields = dict(unpacked(plain))
        fields["interrupts"] = tuple(Interrupt(**each) for each in fields["interrupts"])
        fields["effects"] = {use: [Effect(**each) for each in effects] for use, effects in fields["effects"].items()}
        fields["tools"] = tuple(fields["tools"])
        return cls(**fields)


def _sealed(plain: Any) -> str:
    """The hash of what it covers, in hexadecimal."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
