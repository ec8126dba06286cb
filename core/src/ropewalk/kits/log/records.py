"""The log of a run: what changes an agent's state is one record, handed to `write_records` before the run goes on.

| kind | data |
|---|---|
| `snapshot_loaded` | `messages`, `ids`, `state`, `cells`, `pause`: the agent as it is now, whatever it was before |
| `run_started` | `invocation_state` (its key names), `policies` (digest) |
| `message_appended` | `id`, `message`; results of tools that the log has are `{"toolResultOf": tool-use id}` |
| `message_replaced` | `id`, `message` |
| `history_spliced` | `at`, `gone` (how many messages go there), `ids` and `messages` that come, `plugin`, `reason` |
| `model_started` | `cycle`, `attempt`, `purpose` |
| `model_ended` | `cycle`, `attempt`, `purpose`, `stop_reason`, `usage`, `input_errors` |
| `attempt_discarded` | `cycle`, `attempt`, `reason` |
| `tool_started` | `tool_use`, `effect`, `attempt`, `cycle` |
| `tool_ended` | `id`, `attempt`, `result` |
| `state_changed` | `cell` (a plugin's name, None for the agent's own state), `key`, `value` unless it was deleted |
| `once` | `key`, `value` |
| `redacted` | `id` of a message, `uses`: a store erases what earlier records say of them before it answers |
| `run_suspended` | the pause, see `ropewalk.kits.suspension` |
| `run_resumed` | `answers` |
| `run_ended` | `stop_reason` |
"""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from ropewalk.kits.aio.locks import Lock
from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.json_values import packed, unpacked

SCHEMA_VERSION: Final = 1

Kind: TypeAlias = Literal[
    "snapshot_loaded",
    "run_started",
    "message_appended",
    "message_replaced",
    "history_spliced",
    "model_started",
    "model_ended",
    "attempt_discarded",
    "tool_started",
    "tool_ended",
    "state_changed",
    "once",
    "redacted",
    "run_suspended",
    "run_resumed",
    "run_ended",
]
Path: TypeAlias = tuple[str, ...]
BESIDE: Final = "beside "
"""With a run's id, the first part of the path of a run beside another one; its messages come as a splice at its end."""
Write: TypeAlias = "Callable[[list[Record]], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class Record:
    """One change. Run, path and number name it.

    Attributes:
        run: Id of the run it belongs to.
        number: Counts from 0 within the run.
        kind: What changed.
        data: The change, JSON and bytes only.
        time: Seconds since the epoch.
        path: Tool-use ids that lead from the log's own agent to the sub-agent whose run it is; empty for its own.
        version: Version of the shape of `data`.
    """

    run: str
    number: int
    kind: Kind
    data: dict[str, Any]
    time: float = 0.0
    path: Path = ()
    version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """The record as a JSON object; bytes become `{"$bytes": BASE64}`."""
        return {**self._head(), "data": packed(self.data)}

    def to_json(self) -> str:
        """`to_dict` as one line of text."""
        try:
            text = _line({**self._head(), "data": self.data})
        except (TypeError, ValueError, RecursionError):
            text = '"$'

        if '"$' in text:  # bytes, or something that could be taken for them
            text = _line(self.to_dict())

        return text if text.isascii() or _is_unicode(text) else json.dumps(self.to_dict(), separators=_TIGHT)

    def _head(self) -> dict[str, Any]:
        head: dict[str, Any] = {"run": self.run, "n": self.number, "kind": self.kind, "v": self.version, "t": self.time}
        return {**head, "path": list(self.path)} if self.path else head

    @classmethod
    def from_dict(cls, value: Any) -> Record:
        """The record of a JSON object.

        Raises:
            ValueError: It is none, or a newer version's.
        """
        record = cls._shaped(value)
        return replace(record, data=unpacked(record.data))

    @classmethod
    def from_json(cls, value: Any, text: str | bytes) -> Record:
        """As `from_dict`, of an object that nobody else has; quicker.

        Args:
            value: What `text` stands for; the record keeps parts of it.
            text: The JSON, which tells whether bytes are in it.

        Raises:
            ValueError: As for `from_dict`.
        """
        packs = b'"$' in text if isinstance(text, bytes) else '"$' in text
        return cls.from_dict(value) if packs else cls._shaped(value)

    @classmethod
    def _shaped(cls, value: Any) -> Record:
        try:
            version, path = value["v"], tuple(value.get("path", ()))
            run, number, kind, time = value["run"], value["n"], value["kind"], value["t"]
            data = value["data"]
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no record of a run: {value!r:.80}") from error

        if type(version) is not int or type(number) is not int or not isinstance(data, dict):
            raise ValueError(f"no record of a run: {value!r:.80}")

        if version > SCHEMA_VERSION:
            raise ValueError(f"the record is of version {version}, and this is {SCHEMA_VERSION}: upgrade ropewalk-core")

        return cls(run, number, kind, data, time, path, version)


_TIGHT: Final = (",", ":")


def _line_encoder() -> Callable[[Any], str]:
    """`json.dumps` makes its encoder in C anew for each text, which takes as long as a record does."""
    plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=_TIGHT)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode

    quoted = json.encoder.encode_basestring
    in_c = make(None, plain.default, quoted, None, ":", ",", False, False, False)
    return lambda value: "".join(in_c(value, 0))


_line: Final = _line_encoder()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False

    return True


class Queue:
    """What an agent's runs, one after the other or beside one another, have noted and not written yet, in its order.

    Attributes:
        records: The records.
        writing: Held while records are written.
    """

    __slots__ = ("records", "writing")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.writing = Lock()


class Journal:
    """Collects a run's records between two commits.

    Attributes:
        run: The run's id.
        path: Where the run is nested.
        write: Stores records.
        writing: Held while records are written.
    """

    __slots__ = ("_lock", "_number", "_pending", "_queue", "path", "run", "write", "writing")

    def __init__(
        self,
        run: str,
        write: Write,
        number: int = 0,
        outer: Journal | None = None,
        place: str = "",
        queue: Queue | None = None,
    ) -> None:
        self.run = run
        self.write = write
        self.path: Path = () if outer is None else (*outer.path, place)
        self._queue: Queue = outer._queue if outer is not None else queue or Queue()  # noqa: SLF001 - one for all
        self.writing = self._queue.writing
        self._lock = threading.Lock()  # tools in threads change state, which is a record
        self._number = number
        self._pending = self._queue.records

    def add(self, kind: Kind, data: dict[str, Any]) -> None:
        """Notes one change."""
        with self._lock:
            record = Record(self.run, self._number, kind, data, current_seam().time(), self.path)
            self._number += 1
            self._pending.append(record)

    def nested(self, run: str, place: str, number: int = 0) -> Journal:
        """The journal of a run inside this one, whose records join this one's.

        Args:
            run: The inner run's id.
            place: The tool-use id that it answers.
            number: How many records it has noted before.
        """
        return Journal(run, self.write, number, self, place)

    @property
    def pending(self) -> bool:
        """Whether something is not written yet."""
        return bool(self._pending)

    @property
    def number(self) -> int:
        """How many records the run has noted."""
        return self._number

    def take(self) -> list[Record]:
        """Everything noted since the last call."""
        taken = list(self._pending)
        del self._pending[: len(taken)]
        return taken

    def put_back(self, records: list[Record]) -> None:
        """Gives back what could not be written: it comes first the next time."""
        self._pending[:0] = records
