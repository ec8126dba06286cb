"""JSON as it goes over the wire."""

from __future__ import annotations

import base64
import json
from typing import Any


def json_bytes(value: Any) -> bytes:
    """The value as JSON in UTF-8; bytes become base64 text, lone surrogates stay escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_base64).encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=_base64).encode()


def _base64(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()

    raise TypeError(f"{type(value).__name__} is no JSON: give text, numbers, lists, dicts or bytes")
