"""Names of tools for agents, whose own names may be any text."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.messages.rules import is_legal_tool_name

_LONGEST: Final = 64
_DIGEST: Final = 8


def checked_name(name: object) -> str:
    """A name that the user chose, as it is.

    Raises:
        ToolDefinitionError: Providers would not take it.
    """
    if isinstance(name, str) and is_legal_tool_name(name):
        return name

    raise ToolDefinitionError(
        f"as_tool(name={name!r}): the name is not allowed: use 1 to {_LONGEST} of the letters a-z A-Z, digits, _ and -"
    )


def legal_name(name: str) -> str:
    """A tool name made of an agent's name: `"Web research (fast)"` becomes `"Web_research_fast"`.

    A short digest stands in for what cannot be shown, so that two names do not become one: of a name without a legal
    letter, and of one that is too long.
    """
    kept = re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_") if re.search("[a-zA-Z0-9]", name) else ""
    if kept and len(kept) <= _LONGEST:
        return kept

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{kept[: _LONGEST - _DIGEST - 1] or 'agent'}_{digest}"
