"""Names of files and objects for ids that may be any text."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_PLAIN: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])")
_LONGEST: Final = 64
_SHOWN: Final = 32
_DIGITS: Final = 32


def safe_name(text: str) -> str:
    """A name that every file system and object store holds, and that no other text has.

    Short texts of lower-case letters, digits and single `-` or `_` between them name themselves. Any other becomes what
    is readable of it, `--` and a digest: so `Foo` and `foo` differ also where the file system takes them for one.

    Args:
        text: Any text, also blank, and with what is no valid Unicode.
    """
    if len(text) <= _LONGEST and _PLAIN.fullmatch(text) and not _RESERVED.fullmatch(text):
        return text

    readable = _OTHER.sub("-", text[: 2 * _SHOWN].lower())[:_SHOWN].strip("-") or "id"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{readable}--{digest}"
