"""A JSON cell: small state that the kernel keeps per agent and plugin, so that it survives with the agent."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any


class JSONState:
    """Keys and JSON values. What you get is a copy: changes go through `set` and `delete`.

    Raises:
        ValueError: A key that is not a non-empty string, or a value that is not JSON.
    """

    __slots__ = ("_on_change", "_values")

    def __init__(self, initial: dict[str, Any] | None = None) -> None:
        if initial is not None and not isinstance(initial, dict):
            raise ValueError(f"state={initial!r:.80}: give a dict with text keys and JSON values, or a JSONState")

        self._values: dict[str, Any] = {}
        self._on_change: Callable[[dict[str, Any]], None] | None = None
        for key, value in (initial or {}).items():
            self.set(key, value)

    def listen(self, on_change: Callable[[dict[str, Any]], None]) -> None:
        """Has every change told: `key`, and `value` unless it was deleted."""
        self._on_change = on_change

    def get(self, key: str | None = None, default: Any = None) -> Any:
        """A copy of one value, or of everything as a dict."""
        if key is None:
            return copy.deepcopy(self._values)

        return copy.deepcopy(self._values[key]) if key in self._values else default

    def set(self, key: str, value: Any) -> None:
        """Sets one value."""
        if not isinstance(key, str) or not key.strip():
            raise ValueError(f"state key {key!r} is no non-empty string: use one")

        try:
            stored = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"state value for {key!r} is not JSON ({error}): convert it first") from error

        self._values[key] = stored
        if self._on_change is not None:
            self._on_change({"key": key, "value": stored})

    def delete(self, key: str) -> None:
        """Removes one value, if it is there."""
        if self._values.pop(key, self) is not self and self._on_change is not None:
            self._on_change({"key": key})

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __repr__(self) -> str:
        return f"JSONState({self._values!r})"
