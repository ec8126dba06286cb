"""Reads the model's JSON reply while it grows, and tells text and tool calls apart.

A reply is `{"tool": NAME, "arguments": {...}}` or `{"answer": TEXT}`. The text of an answer is decoded as it
comes; arguments are handed on as the JSON they are.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import Final, NamedTuple

_SPACE: Final = " \t\r\n"
_PLAIN: Final = re.compile(r'[^"\\]+')
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE: Final = 4
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_REPLACEMENT: Final = "\ufffd"


class Text(NamedTuple):
    """A piece of the answer's text."""

    text: str


class ToolStart(NamedTuple):
    """The model asks for a tool; its arguments follow."""

    name: str


class ToolInput(NamedTuple):
    """A piece of the arguments' JSON."""

    text: str


Piece = Text | ToolStart | ToolInput


class StringDecoder:
    """Decodes the inside of a JSON string that arrives in pieces.

    Escapes and surrogate pairs may be cut anywhere; a lone surrogate becomes U+FFFD.
    """

    __slots__ = ("_high", "_pending", "closed")

    def __init__(self) -> None:
        self.closed = False
        self._pending = ""
        self._high: int | None = None

    def feed(self, text: str) -> tuple[str, str]:
        """Decodes more of the string.

        Returns:
            The decoded text that is certain by now, and what follows the closing quote.
        """
        out: list[str] = []
        text = self._pending + text
        self._pending = ""
        at = 0
        while at < len(text) and not self.closed:
            if match := _PLAIN.match(text, at):
                self._flush_high(out)
                out.append(match.group())
                at = match.end()
            elif text[at] == '"':
                self._flush_high(out)
                self.closed = True
                at += 1
            else:
                used = self._escape(text, at, out)
                if used == 0:
                    self._pending = text[at:]
                    return "".join(out), ""

                at += used

        return "".join(out), text[at:]

    def _escape(self, text: str, at: int, out: list[str]) -> int:
        """Decodes one escape; returns its length, or 0 when it is not complete yet."""
        if at + 1 >= len(text):
            return 0

        kind = text[at + 1]
        if kind != "u":
            self._flush_high(out)
            out.append(_ESCAPES.get(kind, kind))
            return 2

        digits = text[at + 2 : at + 2 + _UNICODE]
        if len(digits) < _UNICODE:
            return 0

        self._unit(int(digits, 16) if set(digits) <= _HEX else 0xFFFD, out)
        return 2 + _UNICODE

    def _unit(self, unit: int, out: list[str]) -> None:
        """Takes one UTF-16 code unit; the first half of a pair waits for the second."""
        if self._high is not None and 0xDC00 <= unit <= 0xDFFF:  # noqa: PLR2004 - the range of second halves
            out.append(chr(0x10000 + ((self._high - 0xD800) << 10) + (unit - 0xDC00)))
            self._high = None
            return

        self._flush_high(out)
        if 0xD800 <= unit <= 0xDBFF:  # noqa: PLR2004 - the range of first halves
            self._high = unit
        else:
            out.append(_REPLACEMENT if 0xDC00 <= unit <= 0xDFFF else chr(unit))  # noqa: PLR2004

    def _flush_high(self, out: list[str]) -> None:
        if self._high is not None:
            out.append(_REPLACEMENT)
            self._high = None


class RawValue:
    """Passes one JSON value through as it is, and finds its end."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_scalar", "closed")

    def __init__(self) -> None:
        self.closed = False
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._scalar = False

    def feed(self, text: str) -> tuple[str, str]:
        """Returns the value's part of the text, and what follows the value."""
        for at, char in enumerate(text):
            if self._in_string:
                self._inside_string(char)
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]" and self._depth:
                self._depth -= 1
                self.closed = self._depth == 0
            elif self._depth == 0 and (char in "}," or (char in _SPACE and self._scalar)):
                self.closed = True
                return text[:at], text[at:]
            else:
                self._scalar = self._scalar or char not in _SPACE

            if self.closed:
                return text[: at + 1], text[at + 1 :]

        return text, ""

    def _inside_string(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._in_string = False
            self.closed = self._depth == 0


class _State(Enum):
    START = auto()
    KEY = auto()
    COLON = auto()
    VALUE = auto()
    IN_VALUE = auto()
    NEXT = auto()
    END = auto()


class ReplyDecoder:
    """Turns the pieces of a reply into pieces of text and tool calls.

    Args:
        raw_answer: The answer is JSON of its own (an output schema's), handed on undecoded.
    """

    def __init__(self, *, raw_answer: bool = False) -> None:
        self._raw_answer = raw_answer
        self._state = _State.START
        self._key = ""
        self._tool = ""
        self._started = False
        self._early_arguments: list[str] = []
        self._string: StringDecoder | None = None
        self._raw: RawValue | None = None

    @property
    def called_tool(self) -> bool:
        """Whether the reply asks for a tool."""
        return self._started

    @property
    def complete(self) -> bool:
        """Whether the reply's closing brace was seen."""
        return self._state is _State.END

    def feed(self, text: str) -> list[Piece]:
        """Takes more of the reply and returns what it brings, empty pieces left out."""
        pieces: list[Piece] = []
        while text:
            text = self._step(text, pieces)

        return pieces

    def _step(self, text: str, pieces: list[Piece]) -> str:
        """Moves on by one token or one run of a value, and returns the rest of the text."""
        if self._state is _State.IN_VALUE or (self._state is _State.KEY and self._string is not None):
            return self._inside(text, pieces)

        char, rest = text[0], text[1:]
        if char in _SPACE:
            return rest

        if self._state is _State.START and char == "{":
            self._state = _State.KEY
        elif self._state is _State.KEY and char == '"':
            self._string, self._key = StringDecoder(), ""
        elif self._state is _State.COLON and char == ":":
            self._state = _State.VALUE
        elif self._state is _State.VALUE:
            return self._open_value(text)
        elif self._state is _State.NEXT and char == ",":
            self._state = _State.KEY
        elif self._state in (_State.NEXT, _State.KEY) and char == "}":
            self._state = _State.END

        return rest

    def _open_value(self, text: str) -> str:
        decoded = self._key == "tool" or (self._key == "answer" and not self._raw_answer)
        self._state = _State.IN_VALUE
        if decoded and text[0] == '"':
            self._string = StringDecoder()
            return text[1:]

        self._raw = RawValue()
        return text

    def _inside(self, text: str, pieces: list[Piece]) -> str:
        reader = self._string or self._raw
        if reader is None:
            return ""

        value, rest = reader.feed(text)
        if self._state is _State.KEY:
            self._key += value
        else:
            self._take(value, pieces)

        if reader.closed:
            self._close(pieces)

        return rest

    def _take(self, value: str, pieces: list[Piece]) -> None:
        if self._key == "tool":
            self._tool += value
        elif self._key == "answer" and value:
            pieces.append(Text(value))
        elif self._key == "arguments" and value:
            if self._started:
                pieces.append(ToolInput(value))
            else:
                self._early_arguments.append(value)

    def _close(self, pieces: list[Piece]) -> None:
        self._string = self._raw = None
        if self._state is _State.KEY:
            self._state = _State.COLON
            return

        self._state = _State.NEXT
        if self._key == "tool":
            self._started = True
            pieces.append(ToolStart(self._tool))
            if self._early_arguments:
                pieces.append(ToolInput("".join(self._early_arguments)))


def reply_text(name: str, arguments: object) -> str:
    """A tool call in the form that the model is asked to write."""
    return json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False)
