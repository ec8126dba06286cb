"""A log as a timeline: runs, and what happened in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ropewalk.kits.log.records import Path, Record
from ropewalk.kits.terminal import first_line
from ropewalk_views.rendering import call_of, plain, short, text_of_result

_MOST: Final = 100


@dataclass(slots=True)
class Event:
    """One thing that happened.

    Attributes:
        record: Number of the record that it begins with; `SESSION@record` ends with that one.
        at: Seconds since the run began.
        path: Tool-use ids that lead to the sub-agent that it happened in; empty for the log's own agent.
        kind: Kind of that record.
        text: What happened.
        took: Seconds that it took; None when it has no length, or did not end.
        usage: Tokens that the model counted.
    """

    record: int
    at: float
    path: Path
    kind: str
    text: str
    took: float | None = None
    usage: Mapping[str, int] | None = None


@dataclass(slots=True)
class RunTrace:
    """One run.

    Attributes:
        number: Counts from 1; 0 for what is there before any run.
        run: The run's id.
        started: When its first record was made, in seconds since the epoch.
        seconds: From its first record to its last.
        stopped: Why it ended; `"paused"`, or `"broken off"` while it has not.
        usage: The tokens of all its model calls, those of sub-agents and plugins too.
        events: What happened, in order.
    """

    number: int
    run: str
    started: float
    seconds: float = 0.0
    stopped: str = "broken off"
    usage: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


def runs_of(records: Sequence[Record]) -> list[RunTrace]:
    """The runs of a log, in order; what was folded comes first, as a run with the number 0."""
    runs: list[RunTrace] = []
    numbers = 0
    for run, part in _parts(records):
        begins = any(record.kind == "run_started" and not record.path for _, record in part)
        numbers += begins
        trace = RunTrace(numbers if begins else 0, run, part[0][1].time)
        _Reader(trace).read(part)
        if not begins:
            trace.stopped = "folded"

        runs.append(trace)

    return runs


def _parts(records: Sequence[Record]) -> Iterator[tuple[str, list[tuple[int, Record]]]]:
    """Records with their numbers, by the run of the log's own agent that they belong to."""
    part: list[tuple[int, Record]] = []
    run = ""
    for number, record in enumerate(records, start=1):
        if part and not record.path and record.run != run:
            yield run, part
            part = []

        if not part or not record.path:
            run = record.run

        part.append((number, record))

    if part:
        yield run, part


class _Reader:
    """Turns the records of one run into events; what ends something is told with its beginning."""

    def __init__(self, trace: RunTrace) -> None:
        self._trace = trace
        self._open: dict[tuple[Any, ...], tuple[Event, float]] = {}
        self._uses: dict[tuple[Path, str], str] = {}

    def read(self, part: Sequence[tuple[int, Record]]) -> None:
        for number, record in part:
            self._trace.seconds = max(record.time - self._trace.started, 0.0)
            show = _SHOWN.get(record.kind)
            if show is None:
                self._add(number, record, record.kind)
            else:
                show(self, number, record, record.data)

        for event, _ in self._open.values():
            event.text += ": no end"

    def _add(self, number: int, record: Record, text: str) -> Event:
        at = max(record.time - self._trace.started, 0.0)  # the clock may have gone backwards
        event = Event(number, at, record.path, record.kind, text)
        self._trace.events.append(event)
        return event

    def _begin(self, number: int, record: Record, text: str, *key: Any) -> None:
        self._open[(record.path, *key)] = self._add(number, record, text), record.time

    def _end(self, number: int, record: Record, text: str, *key: Any) -> Event:
        """The event that a record ends; a new one when its beginning was not recorded."""
        event, since = self._open.pop((record.path, *key), (None, 0.0))
        if event is None:
            return self._add(number, record, text)

        event.took = max(record.time - since, 0.0)
        return event

    def _snapshot(self, number: int, record: Record, data: dict[str, Any]) -> None:
        self._add(number, record, f"snapshot: {len(data['messages'])} messages")

    def _run_started(self, number: int, record: Record, _: dict[str, Any]) -> None:
        self._add(number, record, self._sub_agent(record.path) if record.path else "begins")

    def _sub_agent(self, path: Path) -> str:
        call = self._uses.get((path[:-1], path[-1]), path[-1])
        return f"sub-agent of {call.partition(' ')[0]} begins"

    def _run_ended(self, number: int, record: Record, data: dict[str, Any]) -> None:
        self._add(number, record, f"ends: {data['stop_reason']}")
        if not record.path:
            self._trace.stopped = data["stop_reason"]

    def _run_suspended(self, number: int, record: Record, data: dict[str, Any]) -> None:
        names = ", ".join(str(each["name"]) for each in data.get("interrupts", ()))
        self._add(number, record, f"pauses for answers: {names}" if names else f"pauses: {data.get('kind')}")
        if not record.path:
            self._trace.stopped = "paused"

    def _run_resumed(self, number: int, record: Record, data: dict[str, Any]) -> None:
        answers = f" with answers {plain(data['answers'])}" if data["answers"] else ""
        self._add(number, record, f"goes on{answers}")
        if not record.path:
            self._trace.stopped = "broken off"

    def _message(self, number: int, record: Record, data: dict[str, Any]) -> None:
        for block in data["message"]["content"]:
            if "toolUse" in block:
                self._uses[record.path, block["toolUse"]["toolUseId"]] = call_of(block["toolUse"])

        replaced = f"replaces message {data['id']}: " if record.kind == "message_replaced" else ""
        of = [block["toolResultOf"] for block in data["message"]["content"] if "toolResultOf" in block]
        if of:
            calls = [self._uses.get((record.path, use), use).partition(" ")[0] for use in of]
            text = f"results of {', '.join(calls)}"
        else:
            text = short(data["message"], _MOST)

        self._add(number, record, first_line(replaced + text, most=2 * _MOST))

    def _spliced(self, number: int, record: Record, data: dict[str, Any]) -> None:
        who = data.get("plugin") or "the program"
        reason = f" ({first_line(str(data['reason']), most=_MOST)})" if data.get("reason") else ""
        gone, come = data["gone"], len(data["messages"])
        where = f"from message {data['at'] + 1} on"
        self._add(number, record, f"{who} changes the history{reason}: {gone} messages go, {come} come, {where}")

    def _model_started(self, number: int, record: Record, data: dict[str, Any]) -> None:
        self._begin(number, record, _model_call(data), "model", data["cycle"], data["attempt"], data["purpose"])

    def _model_ended(self, number: int, record: Record, data: dict[str, Any]) -> None:
        key = "model", data["cycle"], data["attempt"], data["purpose"]
        event = self._end(number, record, _model_call(data), *key)
        event.text += f": {data['stop_reason']}"
        event.usage = dict(data.get("usage") or {})
        for name, count in event.usage.items():
            if isinstance(count, int):
                self._trace.usage[name] = self._trace.usage.get(name, 0) + count

    def _discarded(self, number: int, record: Record, data: dict[str, Any]) -> None:
        for key in [key for key in self._open if key[:4] == (record.path, "model", data["cycle"], data["attempt"])]:
            event, since = self._open.pop(key)
            event.text += ": discarded"
            event.took = max(record.time - since, 0.0)

        reason = first_line(str(data["reason"]), most=_MOST)
        self._add(number, record, f"attempt {data['attempt']} of turn {data['cycle'] + 1} is discarded: {reason}")

    def _tool_started(self, number: int, record: Record, data: dict[str, Any]) -> None:
        use = data["tool_use"]
        attempt = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
        text = f"tool {first_line(call_of(use), most=_MOST)} [{data['effect']}{attempt}]"
        self._begin(number, record, text, "tool", use["toolUseId"], data["attempt"])

    def _tool_ended(self, number: int, record: Record, data: dict[str, Any]) -> None:
        call = self._uses.get((record.path, data["id"]), data["id"])
        text = f"tool {first_line(call, most=_MOST)}"
        event = self._end(number, record, text, "tool", data["id"], data["attempt"])
        result = data["result"]
        event.text += f": {result.get('status')}: {first_line(text_of_result(result), most=_MOST)}"

    def _state(self, number: int, record: Record, data: dict[str, Any]) -> None:
        whose = "state" if data["cell"] is None else f"state of {data['cell']}"
        value = f"= {first_line(plain(data['value']), most=_MOST)}" if "value" in data else "is deleted"
        self._add(number, record, f"{whose}: {data['key']} {value}")

    def _once(self, number: int, record: Record, data: dict[str, Any]) -> None:
        self._add(number, record, f"once {data['key']}: {first_line(plain(data['value']), most=_MOST)}")

    def _redacted(self, number: int, record: Record, data: dict[str, Any]) -> None:
        self._add(number, record, f"message {data['id']} is redacted")


def _model_call(data: Mapping[str, Any]) -> str:
    purpose = "" if data["purpose"] == "turn" else f" for {data['purpose']}"
    attempt = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
    return f"model{purpose}, turn {data['cycle'] + 1}{attempt}"


_SHOWN: Final[Mapping[str, Callable[[_Reader, int, Record, dict[str, Any]], None]]] = {
    "snapshot_loaded": _Reader._snapshot,  # noqa: SLF001 - a table of its own methods
    "run_started": _Reader._run_started,  # noqa: SLF001
    "run_ended": _Reader._run_ended,  # noqa: SLF001
    "run_suspended": _Reader._run_suspended,  # noqa: SLF001
    "run_resumed": _Reader._run_resumed,  # noqa: SLF001
    "message_appended": _Reader._message,  # noqa: SLF001
    "message_replaced": _Reader._message,  # noqa: SLF001
    "history_spliced": _Reader._spliced,  # noqa: SLF001
    "model_started": _Reader._model_started,  # noqa: SLF001
    "model_ended": _Reader._model_ended,  # noqa: SLF001
    "attempt_discarded": _Reader._discarded,  # noqa: SLF001
    "tool_started": _Reader._tool_started,  # noqa: SLF001
    "tool_ended": _Reader._tool_ended,  # noqa: SLF001
    "state_changed": _Reader._state,  # noqa: SLF001
    "once": _Reader._once,  # noqa: SLF001
    "redacted": _Reader._redacted,  # noqa: SLF001
}
