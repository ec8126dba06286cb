"""Requests, events and errors as plain JSON, and back."""

from __future__ import annotations

import base64
import builtins
import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ropewalk.errors import ModelError
from ropewalk.kits.json_values import strict_json
from ropewalk.model import ModelRequest

_BYTES: Final = "$bytes"
_KEPT: Final = ("provider", "code", "status", "failure", "retryable", "retry_after")


def encode(value: Any) -> Any:
    """A value made of JSON types. Bytes become `{"$bytes": base64}`; what JSON has no form for becomes its nearest."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        return {_key(key): encode(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [encode(each) for each in value]

    return strict_json(value)


def decode(value: Any) -> Any:
    """What was encoded, as a new value."""
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_BYTES}:
        return base64.b64decode(value[_BYTES])

    return {key[1:] if key.startswith("$$") else key: decode(each) for key, each in value.items()}


def encode_request(request: ModelRequest) -> dict[str, Any]:
    """What a provider may see of a request, so without `invocation_state` and the metadata of messages."""
    messages = [{key: each for key, each in message.items() if key != "metadata"} for message in request.messages]
    fields = {
        "purpose": request.purpose,
        "system": request.system,
        "messages": messages,
        "tool_specs": request.tool_specs,
        "tool_choice": request.tool_choice,
        "output_schema": request.output_schema,
    }
    return {key: encode(value) for key, value in fields.items()}


def encode_error(error: Exception) -> dict[str, Any]:
    """A failed call."""
    kept = {name: encode(getattr(error, name, None)) for name in _KEPT}
    kind = type(error)
    return {
        "type": f"{kind.__module__}:{kind.__qualname__}",
        "message": str(error),
        **{name: value for name, value in kept.items() if value is not None},
    }


def decode_error(recorded: Mapping[str, Any]) -> Exception:
    """The error again; of a class that is not at hand, a `ModelError` that names it."""
    message = str(recorded.get("message", ""))
    kind = _class_of(str(recorded.get("type", "")))
    if kind is None:
        kind, message = ModelError, f"{recorded.get('type')}: {message}"

    # Without its constructor, whose arguments are not known.
    error = kind.__new__(kind, message)
    error.args = (message,)
    if isinstance(error, ModelError):
        error.retry_after = None
        for name in _KEPT:
            if name in recorded:
                setattr(error, name, recorded[name])

    return error


def _key(key: Any) -> str:
    text = str(key)
    return f"${text}" if text.startswith("$") else text


def _class_of(name: str) -> type[Exception] | None:
    """Only built-in errors and those of Ropewalk's own packages: a file must not make other modules load."""
    module, _, qualname = name.partition(":")
    package = module.partition(".")[0]
    if module == "builtins":
        found: Any = getattr(builtins, qualname, None)
    elif package == "ropewalk" or package.startswith("ropewalk_"):
        try:
            found = getattr(importlib.import_module(module), qualname, None)
        except ImportError:
            found = None
    else:
        found = next(
            (each for each in _subclasses(ModelError) if f"{each.__module__}:{each.__qualname__}" == name), None
        )

    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _subclasses(kind: type[ModelError]) -> list[type[ModelError]]:
    return [kind, *(found for each in kind.__subclasses__() for found in _subclasses(each))]
