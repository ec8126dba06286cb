"""What a log adds up to: messages, state, and the run that was under way when it broke off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from ropewalk.kits.log.records import BESIDE, Record
from ropewalk.kits.suspension import Effect, Suspension


@dataclass(slots=True)
class LogState:
    """The state of an agent, as its log has it. `apply` takes it on by one record.

    Attributes:
        messages: The conversation.
        ids: The id of each message.
        next_id: The next new message's id.
        state: The agent's own state.
        cells: The state of its plugins, by name.
        nested: States of sub-agents whose calls have not ended, by tool-use id.
        records: How many records it was made of.
        runs: How many runs have begun.
        results: Results of the tools of the open turn, which the message with them refers to.
        open: What is known of the run under way, by the names of `Suspension`; None between runs.
        held: The pause that the agent waits in, as JSON; None when it does not.
        ended: What the last answer of the model came with.
        early: What hooks did once before their run's first record, by run.
        begun: Whether the run under way has come to more than its first record; if not there is nothing to go on with.
        stopped: Why the last run ended; None when there was none since the last snapshot, and while one is open.
    """

    messages: list[Any] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    next_id: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    nested: dict[str, LogState] = field(default_factory=dict)
    records: int = 0
    runs: int = 0
    results: dict[str, Any] = field(default_factory=dict)
    open: dict[str, Any] | None = None
    held: dict[str, Any] | None = None
    ended: dict[str, Any] = field(default_factory=dict)
    early: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: bool = False
    stopped: str | None = None

    @property
    def pause(self) -> Suspension | None:
        """The paused run; of kind `"crash"` when the log breaks off in the middle of a run.

        Raises:
            ResumeError: The pause is damaged, or of another version.
        """
        if self.open is not None and self.begun:
            return Suspension(**self.open)

        return None if self.held is None else Suspension.from_dict(self.held)

    def to_data(self) -> dict[str, Any]:
        """The data of a `snapshot_loaded` record that stands for everything so far.

        Raises:
            ValueError: A run is under way: its records must stay.
        """
        if self.open is not None:
            raise ValueError("the log ends in the middle of a run, which a snapshot cannot stand for: resume it first")

        return {
            "messages": self.messages, "ids": self.ids, "state": self.state, "cells": self.cells, "pause": self.held,
        }  # fmt: skip

    def apply(self, record: Record) -> None:
        """Carries out one record.

        Raises:
            ValueError: The record does not fit what came before, or is of an unknown kind.
        """
        self.records += 1
        if record.path:
            use_id, *deeper = record.path
            if use_id.startswith(BESIDE):
                return  # told to readers only: what it came to is the splice at its end

            self.nested.setdefault(use_id, LogState()).apply(replace(record, path=tuple(deeper)))
            return

        act = _ACTS.get(record.kind)
        if act is None:
            raise ValueError(f"record {record.number} of run {record.run} is of the unknown kind {record.kind!r}")

        try:
            act(self, record, record.data)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(
                f"record {record.number} of run {record.run} ({record.kind}) does not fit what came before: {error!r}"
            ) from error

        if self.open is not None and self.open["run"] == record.run:
            self.open["records"] = record.number + 1
            self.begun = record.kind != "run_started"


def fold(state: LogState, records: Iterable[Record]) -> LogState:
    """Carries out records on a state, which it changes and returns.

    Raises:
        ValueError: A record does not fit.
    """
    for record in records:
        state.apply(record)

    return state


# -- one function per kind ---------------------------------------------------------------------------------------


def _snapshot(log: LogState, _: Record, data: dict[str, Any]) -> None:
    log.messages, log.ids = list(data["messages"]), list(data["ids"])
    log.next_id = max(log.ids, default=-1) + 1
    log.state, log.cells = dict(data["state"]), {name: dict(cell) for name, cell in data["cells"].items()}
    log.open, log.held, log.stopped = None, data.get("pause"), None


def _run_started(log: LogState, record: Record, _: dict[str, Any]) -> None:
    log.open, log.held = {"kind": "crash", "run": record.run, "position": "cycle"}, None
    log.open["once"] = log.early.get(record.run, {})  # of hooks that came before
    log.early = {}
    log.runs += 1
    log.results, log.stopped = {}, None


def _run_resumed(log: LogState, _: Record, data: dict[str, Any]) -> None:
    before = log.pause
    if before is None:
        raise KeyError("pause")

    going = replace(before.with_answers(data["answers"]), kind="crash", checkpoint=None, interrupts=())
    log.open, log.held = {each.name: getattr(going, each.name) for each in fields(going)}, None
    log.results = {**{use: kept[-1].result for use, kept in going.effects.items() if kept}, **going.finished}


def _run_suspended(log: LogState, _: Record, data: dict[str, Any]) -> None:
    log.open, log.held = None, data


def _run_ended(log: LogState, _: Record, data: dict[str, Any]) -> None:
    log.open = log.held = None
    log.stopped = data["stop_reason"]
    log.nested.clear()


def _message_appended(log: LogState, _: Record, data: dict[str, Any]) -> None:
    message = _resolved(log, data["message"])
    if log.held is not None and log.held["position"] == "tools":
        log.held = None  # its calls are answered for: who wrote that did not live to write that the run has ended

    log.messages.append(message)
    log.ids.append(data["id"])
    log.next_id = data["id"] + 1
    _at_tail(log, message)


def _message_replaced(log: LogState, _: Record, data: dict[str, Any]) -> None:
    place = len(log.ids) - 1 if log.ids[-1] == data["id"] else log.ids.index(data["id"])
    log.messages[place] = message = _resolved(log, data["message"])
    if place == len(log.ids) - 1:
        _at_tail(log, message)


def _resolved(log: LogState, message: Any) -> Any:
    """A message as it stood in the history: results that the log has already are put in."""
    blocks = message["content"]
    if not any("toolResultOf" in block for block in blocks):
        return message

    content = [{"toolResult": log.results[b["toolResultOf"]]} if "toolResultOf" in b else b for b in blocks]
    return {**message, "content": content}


def _at_tail(log: LogState, message: Any) -> None:
    """Where the run stands once a message is at the tail."""
    run = log.open
    if run is None:
        return

    blocks = message["content"]
    if message["role"] == "assistant":
        uses = any("toolUse" in block for block in blocks)
        model = {"message": message, "stop_reason": log.ended.get("stop_reason", "end_turn")}
        run.update(position="tools" if uses else "answered", model=None if uses else model)
        run.update(input_errors=log.ended.get("input_errors") or {}, finished={}, effects={}, unknown={})
    elif run["position"] == "tools" and any("toolResult" in block for block in blocks):
        run.update(position="after_tools", finished={}, effects={}, unknown={}, memos={}, answers={}, interrupts=())
        log.results = {}
    elif run["position"] != "tools":
        run.update(position="cycle", input=[], model=None)


def _spliced(log: LogState, _: Record, data: dict[str, Any]) -> None:
    at, gone = data["at"], data["gone"]
    if not 0 <= at <= at + gone <= len(log.messages) or len(data["ids"]) != len(data["messages"]):
        raise IndexError(at)

    log.messages[at : at + gone] = data["messages"]
    log.ids[at : at + gone] = data["ids"]
    log.next_id = max(log.next_id, max(data["ids"], default=-1) + 1)


def _model_started(log: LogState, _: Record, data: dict[str, Any]) -> None:
    log.ended = {}
    if log.open is not None and data["purpose"] == "turn":
        log.open.update(position="model", cycle=data["cycle"], attempt=data["attempt"], model=None)


def _model_ended(log: LogState, _: Record, data: dict[str, Any]) -> None:
    if data["purpose"] == "turn":
        log.ended = data


def _tool_started(log: LogState, _: Record, data: dict[str, Any]) -> None:
    if log.open is not None:
        log.open.setdefault("unknown", {})[data["tool_use"]["toolUseId"]] = data["attempt"]


def _tool_ended(log: LogState, _: Record, data: dict[str, Any]) -> None:
    use_id = data["id"]
    log.results[use_id] = data["result"]
    log.nested.pop(use_id, None)
    if log.open is not None:
        log.open.setdefault("unknown", {}).pop(use_id, None)
        effects = log.open.setdefault("effects", {})
        effects[use_id] = [*effects.get(use_id, ())[: data["attempt"] - 1], Effect(data["result"])]


def _state_changed(log: LogState, _: Record, data: dict[str, Any]) -> None:
    cell = log.state if data["cell"] is None else log.cells.setdefault(data["cell"], {})
    if "value" in data:
        cell[data["key"]] = data["value"]
    else:
        cell.pop(data["key"], None)


def _once(log: LogState, record: Record, data: dict[str, Any]) -> None:
    if log.open is not None and log.open["run"] == record.run:
        log.open.setdefault("once", {})[data["key"]] = data["value"]
    else:
        log.early.setdefault(record.run, {})[data["key"]] = data["value"]


def _nothing(_: LogState, __: Record, ___: dict[str, Any]) -> None:
    """A record that tells a reader something and changes no state."""


_ACTS: Final[Mapping[str, Callable[[LogState, Record, dict[str, Any]], None]]] = {
    "snapshot_loaded": _snapshot,
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "run_suspended": _run_suspended,
    "run_ended": _run_ended,
    "message_appended": _message_appended,
    "message_replaced": _message_replaced,
    "history_spliced": _spliced,
    "model_started": _model_started,
    "model_ended": _model_ended,
    "attempt_discarded": _nothing,
    "tool_started": _tool_started,
    "tool_ended": _tool_ended,
    "state_changed": _state_changed,
    "once": _once,
    "redacted": _nothing,
}
