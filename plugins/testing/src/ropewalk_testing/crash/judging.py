"""What must hold after a crash: compared are the log as it was left, what tools did, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN
from ropewalk_testing.crash.scenario import LOOKED_UP, SUBAGENT
from ropewalk_testing.history import assert_valid_history

if TYPE_CHECKING:
    from ropewalk_testing.crash.effects import Happened
    from ropewalk_testing.crash.scenario import Scenario


@dataclass
class Known:
    """What a log says of tools and hooks, at the moment when a process had been killed.

    Attributes:
        ended: Tool uses that were seen to end.
        started: Tool uses that were seen to start, and not to end: their tool and its effect.
        announced: Tool uses that were ever seen to start.
        once: Runs and keys of the hooks' effects.
        folded: Whether earlier records were folded into a snapshot, which keeps no calls of sub-agents.
    """

    ended: set[str] = field(default_factory=set)
    started: dict[str, tuple[str, str]] = field(default_factory=dict)
    announced: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)
    folded: bool = False


@dataclass(frozen=True)
class Case:
    """One run that was killed.

    Attributes:
        scenario: What ran.
        baseline: How it ends when nobody kills it.
        end: How it ended.
        logs: The log's records, as they were found after each kill.
        happened: The side effects.
    """

    scenario: Scenario
    baseline: dict[str, Any]
    end: dict[str, Any]
    logs: Sequence[list[dict[str, Any]]]
    happened: list[Happened]


def known_of(records: Sequence[dict[str, Any]]) -> Known:
    """What a log says of tools and hooks."""
    known = Known()
    for record in records:
        kind, data = record["kind"], record["data"]
        if kind == "tool_started":
            use = data["tool_use"]
            known.started[use["toolUseId"]] = (use["name"], data["effect"])
            known.announced.add(use["toolUseId"])
        elif kind == "tool_ended":
            known.ended.add(data["id"])
        elif kind == "run_suspended":  # a call that waits for an answer starts anew with it, unless it was cut off
            known.started = {use: what for use, what in known.started.items() if use in data.get("unknown", ())}
        elif kind == "once":
            known.once.add(f"{data['key']}:{record['run']}")
        else:
            known.folded |= kind == "snapshot_loaded" and record["n"] > 0
            messages = [*data.get("messages", ()), *([data["message"]] if "message" in data else ())]
            blocks = [block for message in messages for block in message["content"]]
            known.ended |= {block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block}

    for use_id in known.ended:
        known.started.pop(use_id, None)

    return known


def problems(case: Case) -> list[str]:
    """Everything that is wrong with how a case ended; nothing when all is well."""
    known = [known_of(log) for log in case.logs]
    unknown: dict[str, tuple[str, str]] = {}
    for each in known:
        unknown.update({use: what for use, what in each.started.items() if case.scenario.may_stay_unknown(*what)})

    return [
        *_effects(case, known),
        *_keys(case),
        *_history(case, unknown),
        *_state(case),
        *_log(case),
    ]


def _effects(case: Case, known: Sequence[Known]) -> Iterator[str]:
    """Nothing finished runs again, nothing irreversible runs silently again, nothing runs unannounced."""
    for phase, log in enumerate(known, start=1):
        for effect in case.happened:
            what = f"tool {effect.tool!r}, call {effect.use!r} ({effect.effect})"
            started = log.started.get(effect.use)
            if effect.phase >= phase:
                if effect.effect == "once" and effect.use in log.once:
                    yield f"the effect {effect.use!r} of a hook was in the log after kill {phase} and happened again"
                elif effect.use in log.ended:
                    yield f"{what} had ended when process {phase} was killed, and ran again"
                elif started is not None and case.scenario.may_stay_unknown(*started):
                    yield f"{what} was under way when process {phase} was killed, and ran again without a word"
            elif effect.effect not in ("once", "pure") and effect.use not in log.announced | log.ended:
                if log.folded and effect.use.startswith(SUBAGENT):
                    continue

                yield f"{what} ran before kill {phase}, and the log does not know that it had started"

    if not known:
        yield from _unkilled(case)


def _unkilled(case: Case) -> Iterator[str]:
    """A run that nobody kills must do what it is meant to, or the others show nothing."""
    if len({each.use for each in case.happened}) != len(case.happened):
        yield "a tool ran twice"

    for message in case.end["messages"]:
        for block in message["content"]:
            if block.get("toolResult", {}).get("status") == "error":
                yield f"a tool failed: {_short(block)}"


def _keys(case: Case) -> Iterator[str]:
    keys: dict[str, set[str]] = {}
    for each in case.happened:
        keys.setdefault(each.use, set()).add(each.key)

    for use, several in keys.items():
        if len(several) > 1:
            yield f"call {use!r} ran under several idempotency keys: {', '.join(sorted(several))}"


def _history(case: Case, unknown: dict[str, tuple[str, str]]) -> Iterator[str]:
    """The history is valid, and the uncrashed one but for outcomes that nobody can know."""
    messages, wanted = case.end["messages"], case.baseline["messages"]
    try:
        assert_valid_history(messages)
    except AssertionError as error:
        yield str(error)

    if len(messages) != len(wanted):
        yield f"the history has {len(messages)} messages, and {len(wanted)} without a crash: {_roles(messages)}"
        return

    for place, (message, should) in enumerate(zip(messages, wanted, strict=True)):
        if len(message["content"]) != len(should["content"]) or message["role"] != should["role"]:
            yield f"message {place} is {_short(message)}, and without a crash {_short(should)}"
            continue

        for block, right in zip(message["content"], should["content"], strict=True):
            result = block.get("toolResult")
            lost = result is not None and result["toolUseId"] in unknown
            if lost and not _tells_unknown(result):
                yield f"nobody can know what became of call {result['toolUseId']!r}, and its result is {_short(result)}"
            elif not lost and block != right:
                yield f"message {place} has {_short(block)}, and without a crash {_short(right)}"


def _tells_unknown(result: Any) -> bool:
    text = result["content"][0].get("text") if result["content"] else None
    return text == LOOKED_UP or (result["status"] == "error" and text == OUTCOME_UNKNOWN)


def _state(case: Case) -> Iterator[str]:
    if case.end["state"] != case.baseline["state"]:
        yield f"the state is {_short(case.end['state'])}, and without a crash {_short(case.baseline['state'])}"


def _log(case: Case) -> Iterator[str]:
    """What is on disk adds up to the agent."""
    logged = case.end["logged"]
    if logged["open"]:
        yield "all prompts are answered, and the log ends in the middle of a run"

    for part in ("messages", "state"):
        if logged[part] != case.end[part]:
            yield f"the log adds up to other {part} than the agent has: {_short(logged[part])}"


def _roles(messages: Any) -> str:
    return " ".join("+".join(next(iter(block)) for block in message["content"]) for message in messages)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}..."  # noqa: PLR2004 - a few lines
