"""From what a provider reported to the kind of failure it is."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from ropewalk.kits.model_errors.tables import FAMILIES, ROWS, FailureClass, Row

_ENDINGS: Final = ("exception", "error")
_LONGEST_TEXT: Final = 10_000
_NO_LETTERS: Final = re.compile(r"[^a-z0-9]")


def classify(provider: str, *, code: str | None = None, status: int | None = None, text: str = "") -> FailureClass:
    """The kind of failure that a provider reported; `ropewalk.kits.model_errors.tables` has the rows.

    Args:
        provider: Whose wording it is, such as `"bedrock"`; case does not matter.
        code: The error's code, or the name of its class, in any spelling: `ThrottlingException`,
            `throttlingException`, `rate_limit_exceeded`. A code of digits is a status.
        status: The HTTP status, if there was one.
        text: The error's message, or the body of the response.

    Returns:
        The kind; `"bad_request"` when no row knows it, because that is never repeated.
    """
    bare = bare_code(code) if code else ""
    if status is None and bare.isdecimal():
        status = int(bare[:3])

    who = provider.lower()
    names = ("*", *FAMILIES.get(who, (who,)))
    said = text[:_LONGEST_TEXT]
    for row, codes, pattern in _compiled():
        if (
            row.provider in names
            and (not codes or bare in codes)
            and (row.status is None or status in row.status)
            and (pattern is None or pattern.search(said))
        ):
            return row.failure

    return "bad_request"


def bare_code(code: str) -> str:
    """What is common to the spellings of a code: `ThrottlingException`, `throttling` and `litellm.ThrottlingError`."""
    last = code.rpartition("#")[2].partition(":")[0].rpartition(".")[2]
    bare = _NO_LETTERS.sub("", last.lower())
    for ending in _ENDINGS:
        if bare.endswith(ending):
            return bare.removesuffix(ending) or bare  # one is enough: a ModelErrorException is more than any ModelError

    return bare


@cache
def _compiled() -> tuple[tuple[Row, frozenset[str], re.Pattern[str] | None], ...]:
    return tuple(
        (
            row,
            frozenset(map(bare_code, row.codes.split())),
            re.compile(row.text, re.IGNORECASE | re.DOTALL) if row.text else None,
        )
        for row in ROWS
    )
