"""A snapshot: the state of an agent at one moment, JSON only, to keep or to start another agent from."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ropewalk.errors import SnapshotException
from ropewalk.kits.json_values import packed

SCHEMA_VERSION: Final = "1.0"
PRESETS: Final[Mapping[str, tuple[str, ...]]] = {"session": ("messages", "state", "plugin_state", "suspension")}
FIELDS: Final = ("messages", "state", "plugin_state", "system_prompt", "suspension")
_SEEDS_FIELDS: Final = {"conversation_manager_state": "plugin_state", "interrupt_state": "suspension"}
"""Fields of the seeds' SDK whose content has another name here."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `Agent.take_snapshot` returns.

    Attributes:
        data: The captured fields, each a JSON value of its own; bytes are `{"$bytes": BASE64}`.
        app_data: The application's own JSON, kept as it was given.
        scope: Always `"agent"`.
        schema_version: Version of the shape of `data`.
        created_at: ISO 8601 time in UTC.
    """

    data: dict[str, Any]
    app_data: dict[str, Any] = field(default_factory=dict)
    scope: str = "agent"
    schema_version: str = SCHEMA_VERSION
    created_at: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The snapshot as a JSON object."""
        return {
            "scope": self.scope,
            "schema_version": self.schema_version,
            "created_at": self.created_at,
            "data": copy.deepcopy(self.data),
            "app_data": copy.deepcopy(self.app_data),
        }

    @classmethod
    def from_dict(cls, value: Any) -> Snapshot:
        """The snapshot of a JSON object.

        Raises:
            SnapshotException: It is none, or of another version.
        """
        if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
            raise SnapshotException('a snapshot is a dict with "data": pass what Snapshot.to_dict() gave')

        snapshot = cls(
            copy.deepcopy(value["data"]),
            copy.deepcopy(value.get("app_data") or {}),
            value.get("scope", ""),
            value.get("schema_version", ""),
            value.get("created_at", ""),
        )
        check(snapshot)
        return snapshot


def fields_of(preset: str | None, include: Iterable[str] | None, exclude: Iterable[str] | None) -> tuple[str, ...]:
    """The fields that a call of `take_snapshot` names.

    Raises:
        SnapshotException: A preset or field that does not exist, or no field at all.
    """
    if preset is not None and preset not in PRESETS:
        raise SnapshotException(f"there is no snapshot preset {preset!r}: use {', '.join(PRESETS)} or include=[...]")

    wanted = [*(PRESETS[preset] if preset else ()), *map(_known, include or ())]
    dropped = set(map(_known, exclude or ()))
    chosen = tuple(name for name in dict.fromkeys(wanted) if name not in dropped)
    if not chosen:
        raise SnapshotException('no field is left to capture: pass preset="session" or include=[...]')

    return chosen


def _known(name: str) -> str:
    name = _SEEDS_FIELDS.get(name, name)
    if name not in FIELDS:
        raise SnapshotException(f"there is no snapshot field {name!r}: use {', '.join(FIELDS)}")

    return name


def capture(readers: Mapping[str, Callable[[], Any]], chosen: Iterable[str], app_data: Any) -> Snapshot:
    """Reads the chosen fields into a snapshot that shares nothing with them.

    Raises:
        SnapshotException: `app_data` is not a JSON object.
    """
    try:
        kept = json.loads(json.dumps({} if app_data is None else app_data, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SnapshotException(f"app_data is not JSON ({error}): convert it first") from error

    if not isinstance(kept, dict):
        raise SnapshotException(f"app_data is {type(app_data).__name__}: pass a dict")

    data = {name: packed(readers[name]()) for name in chosen}
    return Snapshot(data, kept, created_at=dt.datetime.now(dt.UTC).isoformat())


def check(snapshot: Snapshot) -> None:
    """Refuses a snapshot that this version cannot load.

    Raises:
        SnapshotException: Its scope or version is another one, or it holds unknown fields.
    """
    if snapshot.scope != "agent" or snapshot.schema_version != SCHEMA_VERSION:
        raise SnapshotException(
            f"the snapshot is of scope {snapshot.scope!r} and version {snapshot.schema_version!r}: "
            f"this version loads scope 'agent' and version {SCHEMA_VERSION!r}; take it again"
        )

    unknown = [name for name in snapshot.data if name not in FIELDS]
    if unknown:
        raise SnapshotException(f"the snapshot holds the unknown field {unknown[0]!r}: use {', '.join(FIELDS)}")
