"""Takes secrets out of what is recorded.

Where they are known from: the key that a value stands under (`authorization`, `api_key`, `password` ...), the same in a
text (`"api_key": "..."`, `password=...`), the form of well-known keys and tokens, the values of environment variables
with such names, and the patterns of the user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

REDACTED: Final = "<redacted>"

_SECRET_KEY: Final = re.compile(
    r".*(authorization|apikeys?|secret(s|key)?|passw(or)?ds?|passphrase|privatekey|accesskey(id)?|credentials?|cookies?"
    r"|(access|refresh|id|session|security|auth|bearer|api)token)|token|pwd"
)
_SECRET_VARIABLE: Final = re.compile(r"(?i).*(token|key|secret|passw(or)?d|credentials?|bearer_token_\w+)")
# A key and its value in a text: as JSON, as JSON within JSON, and in any other way. They begin at word starts only:
# a text may be a megabyte without a space.
_PAIRS: Final = (
    re.compile(r'(?<!\\)"([A-Za-z][\w\-]{0,60})"\s*:\s*"((?:[^"\\]|\\.)*)'),
    re.compile(r'(?<!\\)\\+"([A-Za-z][\w\-]{0,60})\\+"\s*:\s*\\+"(.*?)(?=\\+"|\Z)', re.DOTALL),
    re.compile(
        r"(?<![\w\-])([A-Za-z][\w\-]{0,60})\\*[\"']?\s*[:=]\s*\\*[\"']?(?:(?:Bearer|Basic|Token)\s+)?"
        r"([^\s\"'\\,;&<>{}]+)"
    ),
)
_FORMS: Final = (
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bABSK[A-Za-z0-9+/=]{20,}"),
    re.compile(r"\bAIza[A-Za-z0-9_\-]{30,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    re.compile(r"\bhf_[A-Za-z0-9]{20,}"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
    re.compile(r"(?<=Bearer )[A-Za-z0-9._~+/=\-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s:@]+(?=@)"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
)
_SHORTEST_IN_ENVIRONMENT: Final = 8
_SCHEMA_KEYS: Final = frozenset({"type", "$ref", "$$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties"})


class Redactor:
    """Replaces secrets by `REDACTED`; doing it twice changes nothing more.

    Args:
        patterns: Regular expressions of the user's; what they match is replaced.
        keys: More keys under which values are secret, in any case and with or without `-` and `_`.
        environ: The environment to look for secrets in; by default the process's.
    """

    def __init__(
        self,
        patterns: Iterable[str | re.Pattern[str]] = (),
        keys: Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._keys = {_compact(key) for key in keys}
        self._forms = (*_FORMS, *(re.compile(pattern) for pattern in patterns))
        values = {
            value
            for name, value in (os.environ if environ is None else environ).items()
            if len(value) >= _SHORTEST_IN_ENVIRONMENT and (_SECRET_VARIABLE.fullmatch(name) or self.is_secret(name))
        }
        if values:
            known = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
            self._forms = (re.compile(known), *self._forms)

    def is_secret(self, key: str) -> bool:
        """Whether values under this key are secret."""
        compact = _compact(key)
        return compact in self._keys or _SECRET_KEY.fullmatch(compact) is not None

    def text(self, text: str) -> str:
        """The text without secrets."""
        return self.pieces([text])[0]

    def pieces(self, pieces: list[str]) -> list[str]:
        """The pieces of one text without its secrets, also those that begin in one piece and end in another."""
        spans = list(_merged(self._spans("".join(pieces))))
        redacted: list[str] = []
        start = 0
        for piece in pieces:
            redacted.append(_without(piece, start, spans))
            start += len(piece)

        return redacted

    def value(self, value: Any) -> Any:
        """A JSON value without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, dict):
            return value

        return {key: _hidden(each) if self._hides(key, each) else self.value(each) for key, each in value.items()}

    def events(self, events: list[Any]) -> list[Any]:
        """Encoded stream events without secrets; texts are looked at whole, whatever pieces they came in."""
        redacted = [event if _streamed(event) else self.value(event) for event in events]
        groups: dict[tuple[Any, ...], list[tuple[int, str, Callable[[str], Any]]]] = {}
        for place, event in enumerate(events):
            streamed = _streamed(event)
            if streamed is not None:
                group, text, rebuild = streamed
                groups.setdefault(group, []).append((place, text, rebuild))

        for parts in groups.values():
            for (place, _, rebuild), piece in zip(parts, self.pieces([text for _, text, _ in parts]), strict=True):
                redacted[place] = rebuild(piece)

        return redacted

    def _hides(self, key: str, value: Any) -> bool:
        return self.is_secret(key) and not (isinstance(value, dict) and not _SCHEMA_KEYS.isdisjoint(value))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for pattern in _PAIRS:
            for match in pattern.finditer(text):
                if match[2] and match[2] != REDACTED and self.is_secret(match[1]):
                    yield match.span(2)

        for form in self._forms:
            for match in form.finditer(text):
                if match.end() > match.start() and match[0] != REDACTED:
                    yield match.span()


def _compact(key: str) -> str:
    return key.lower().replace("-", "").replace("_", "")


def _hidden(value: Any) -> Any:
    """All texts in a value that stands under a secret key."""
    if isinstance(value, str):
        return REDACTED if value else value
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    if isinstance(value, dict):
        return {key: _hidden(each) for key, each in value.items()}

    return value


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin = end = -1
    for start, stop in sorted(spans):
        if start > end:
            if end >= 0:
                yield begin, end
            begin, end = start, stop
        else:
            end = max(end, stop)

    if end >= 0:
        yield begin, end


def _without(piece: str, start: int, spans: list[tuple[int, int]]) -> str:
    """One piece of a text; the mark stands in the piece in which the secret begins."""
    kept: list[str] = []
    at = start
    end = start + len(piece)
    for begin, stop in spans:
        if stop <= start or begin >= end:
            continue

        kept.append(piece[at - start : max(begin, start) - start])
        if begin >= start:
            kept.append(REDACTED)
        at = min(stop, end)

    kept.append(piece[at - start :])
    return "".join(kept)


def _streamed(event: Any) -> tuple[tuple[Any, ...], str, Callable[[str], Any]] | None:
    """Which text a delta is a piece of, the piece, and how the event looks with another."""
    body = event.get("contentBlockDelta") if isinstance(event, dict) else None
    delta = body.get("delta") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(delta, dict) or len(delta) != 1:
        return None

    ((kind, value),) = delta.items()
    inner = None if kind == "text" else {"toolUse": "input", "reasoningContent": "text"}.get(kind)
    text = value if inner is None else value.get(inner) if isinstance(value, dict) else None
    if not isinstance(text, str) or (inner is None and kind != "text"):
        return None

    def rebuild(piece: str) -> Any:
        new = piece if inner is None else {**value, inner: piece}
        return {"contentBlockDelta": {**body, "delta": {kind: new}}}

    return (body.get("contentBlockIndex"), kind), text, rebuild
