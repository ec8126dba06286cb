"""The file of a cassette."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final, TypedDict

from ropewalk_testing.cassettes.errors import AGAIN, CassetteError, MissingCassetteError

KIND: Final = "ropewalk-cassette"
VERSION: Final = 1
_ENDS: Final = ("complete", "closed", "error")


class Call(TypedDict, total=False):
    """One model call; `end` says how its stream ended: `complete`, `closed` by the consumer, or `error`."""

    request: dict[str, Any]
    events: list[Any]
    end: str
    error: dict[str, Any]


class Recording(TypedDict):
    """What a cassette holds: attributes of the model, and its calls in the order in which they began."""

    model: dict[str, Any]
    calls: list[Call]


def load(path: Path) -> Recording:
    """Reads a cassette.

    Raises:
        MissingCassetteError: There is none.
        CassetteError: The file is torn, no cassette, or of a version that is not known here.
    """
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise MissingCassetteError(path) from None
    except OSError as error:
        raise CassetteError(f"cassette {path} cannot be read: {error}") from error
    except ValueError as error:
        raise CassetteError(f"cassette {path} is torn or no JSON ({error}): record it again: {AGAIN}") from error

    if not isinstance(data, dict) or KIND not in data:
        raise CassetteError(f"{path} is no cassette: it is no JSON object with the key {KIND!r}; give another path")
    if data[KIND] != VERSION:
        raise CassetteError(
            f"cassette {path} has the version {data[KIND]!r}, and this one knows {VERSION}: update ropewalk-testing, "
            f"or record it again: {AGAIN}"
        )

    calls = data.get("calls")
    model = data.get("model")
    if not isinstance(calls, list) or not isinstance(model, dict):
        raise CassetteError(f"cassette {path} lacks its list `calls` or its object `model`: record it again: {AGAIN}")
    for number, call in enumerate(calls, 1):
        fault = _fault_of(call)
        if fault:
            raise CassetteError(f"cassette {path}, call {number}: {fault}; record it again: {AGAIN}")

    return {"model": model, "calls": calls}


def save(path: Path, recording: Recording) -> None:
    """Writes a cassette; whoever reads sees the old one or the new one, never a part.

    Raises:
        CassetteError: It cannot be written.
    """
    data = {KIND: VERSION, **recording}
    try:
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # a lone surrogate, which a provider did send: it stays escaped
        text = json.dumps(data, indent=1, allow_nan=False).encode()

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text + b"\n")

            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CassetteError(f"cassette {path} cannot be written: {error}") from error


def _fault_of(call: Any) -> str | None:
    if not isinstance(call, dict):
        return "it is no object"
    if not isinstance(call.get("request"), dict):
        return "its request is no object"
    if not isinstance(call.get("events"), list) or not all(isinstance(event, dict) for event in call["events"]):
        return "its events are no list of objects"
    if call.get("end") not in _ENDS:
        return f"its end is none of {', '.join(_ENDS)}"

    return None if call["end"] != "error" or isinstance(call.get("error"), dict) else "its error is no object"
