"""What leaves the process as JSON is strict JSON and valid Unicode, whatever a tool or a model produced.

One rule per type: NaN and infinities become null, Decimal and UUID text, dates and times ISO 8601 text, bytes base64
text, sets sorted lists, enums their value, dataclasses and pydantic models objects, other keys text, a reference to a
container that is being written the text "<cycle>", integers of more than 630 digits hexadecimal text, anything else its
`str()`.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import math
import uuid
from collections.abc import Mapping
from typing import Any, Final

_MAX_DEPTH: Final = 200
_MAX_BITS: Final = 2_100  # 632 digits; Python may be set to refuse to print or read more than 640
_CYCLE: Final = "<cycle>"
_BYTES: Final = "$bytes"
_TOO_DEEP: Final = "<nested too deeply>"


def clean_text(text: str) -> str:
    """The text in valid Unicode: split surrogate pairs are joined, lone ones become U+FFFD."""
    if text.isascii():
        return text

    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    return text


def text_of(value: Any) -> str:
    """The value's `str()` in valid Unicode; its type's name when it has none."""
    return clean_text(_shown(value))


def strict_json(value: Any) -> Any:
    """The value made of `dict` with text keys, `list`, `str`, `int`, finite `float`, `bool` and None.

    Never raises for a value that Python can build; see the module's text for the rule per type.
    """
    return _strict(value, frozenset(), 0)


def packed(value: Any) -> Any:
    """As `strict_json`, but bytes become `{"$bytes": BASE64}`, so that `unpacked` gives them back."""
    return strict_json(_packed(value))


def unpacked(value: Any) -> Any:
    """A value of its own that `packed` took apart: lists, dicts, and bytes where they were.

    Raises:
        ValueError: What stands in the place of bytes is no base64 text.
    """
    if isinstance(value, list):
        return [unpacked(item) for item in value]

    if not isinstance(value, dict):
        return value

    key = next(iter(value)) if len(value) == 1 else None
    if key == _BYTES:
        return base64.b64decode(value[key], validate=True)

    if key is not None and _is_escaped(key):
        return {key[1:]: unpacked(value[key])}

    return {key: unpacked(item) for key, item in value.items()}


def _is_escaped(key: Any) -> bool:
    """Whether a key is `$bytes` with more dollars before it: so a dict that looks like packed bytes is told apart."""
    return isinstance(key, str) and key.endswith(_BYTES) and set(key[: -len(_BYTES)]) == {"$"}


def _packed(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return {_BYTES: base64.b64encode(bytes(value)).decode()}

    if isinstance(value, list | tuple):
        return [_packed(item) for item in value]

    if isinstance(value, dict):
        plain = {key: _packed(item) for key, item in value.items()}
        key = next(iter(plain)) if len(plain) == 1 else None
        return {f"${key}": plain[key]} if key == _BYTES or _is_escaped(key) else plain

    return value


def _strict(value: Any, inside: frozenset[int], depth: int) -> Any:  # noqa: PLR0911 - one rule per type
    kind = type(value)
    if kind is str:
        return clean_text(value)

    if kind is bool or value is None:
        return value

    if kind is int:
        return value if value.bit_length() <= _MAX_BITS else hex(value)

    if kind is float:
        return value if math.isfinite(value) else None

    try:
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            return _container(value, inside, depth)

        return _other(value, inside, depth)
    except Exception:  # noqa: BLE001 - a value whose own methods raise must not lose a finished run
        return clean_text(_shown(value))


def _container(value: Any, inside: frozenset[int], depth: int) -> Any:
    if id(value) in inside:
        return _CYCLE

    if depth >= _MAX_DEPTH:
        return _TOO_DEEP

    within, deeper = inside | {id(value)}, depth + 1
    if isinstance(value, Mapping):
        return {_key(k, within, deeper): _strict(v, within, deeper) for k, v in value.items()}

    items = [_strict(item, within, deeper) for item in value]
    if isinstance(value, set | frozenset):
        items.sort(key=lambda item: (type(item).__name__, str(item)))

    return items


def _key(key: Any, inside: frozenset[int], depth: int) -> str:
    plain = _strict(key, inside, depth)
    if plain is None or isinstance(plain, bool):
        return {None: "null", True: "true", False: "false"}[plain]

    return plain if isinstance(plain, str) else str(plain)


def _other(value: Any, inside: frozenset[int], depth: int) -> Any:  # noqa: PLR0911 - one rule per type
    if isinstance(value, enum.Enum):
        return _strict(value.value, inside, depth)

    if isinstance(value, str):
        return clean_text(str.__str__(value))

    if isinstance(value, int):
        return _strict(int.__int__(value), inside, depth)

    if isinstance(value, float):
        return _strict(float.__float__(value), inside, depth)

    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()

    if isinstance(value, dt.date | dt.time):
        return clean_text(value.isoformat())

    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        return _object(value, fields, inside, depth)

    dump = getattr(type(value), "model_dump", None)
    return _object(value, dump(value), inside, depth) if callable(dump) else clean_text(_shown(value))


def _object(value: Any, fields: Any, inside: frozenset[int], depth: int) -> Any:
    return _CYCLE if id(value) in inside else _strict(fields, inside | {id(value)}, depth + 1)


def _shown(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a value whose __str__ raises must not lose a finished run
        return f"<{type(value).__name__}>"
