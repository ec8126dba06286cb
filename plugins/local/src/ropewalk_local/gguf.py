"""Reads the header of a GGUF file: enough to refuse what is none or cut short, and to plan memory.

The format is described in github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ropewalk_local.errors import NotGgufError, TruncatedGgufError

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING: Final = 8
_ARRAY: Final = 9
_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_LENGTH: Final = struct.Struct("<Q")
_SPECIAL_TOKEN_TYPES: Final = frozenset({3, 4})  # control and user-defined: matched in any text
_DEFAULT_ALIGNMENT: Final = 32
_MOST_TOKENS: Final = 1 << 24  # no vocabulary has a tenth of it; a damaged count must not fill the memory
# ggml type -> (elements, bytes) of one block; types that are missing here are not checked for their size
_BLOCKS: Final = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself.

    Attributes:
        path: The file.
        size: Bytes of the file.
        values: The metadata, arrays left out.
        special_tokens: Texts that the tokenizer turns into control tokens wherever they stand.
    """

    path: Path
    size: int
    values: dict[str, Any] = field(repr=False)
    special_tokens: tuple[str, ...] = field(repr=False)

    def number(self, key: str) -> int | None:
        """A number of the model's architecture, such as `block_count`."""
        value = self.values.get(f"{self.values.get('general.architecture')}.{key}")
        return value if isinstance(value, int) else None

    @property
    def trained_context(self) -> int | None:
        """Tokens of context that the model was trained for."""
        return self.number("context_length")

    def kv_bytes_per_token(self) -> int | None:
        """Bytes that one token of context takes in a cache of 16-bit floats, or None when the header does not tell."""
        layers, width = self.number("block_count"), self.number("embedding_length")
        heads = self.number("attention.head_count")
        if not (layers and width and heads):
            return None

        kv_heads = self.number("attention.head_count_kv") or heads
        key = self.number("attention.key_length") or width // heads
        value = self.number("attention.value_length") or width // heads
        return layers * kv_heads * (key + value) * 2


def read_header(path: Path) -> Header:
    """Reads and checks a file's header.

    Raises:
        NotGgufError: The file is missing or something else.
        TruncatedGgufError: It ends before what its header announces.
    """
    try:
        size = path.stat().st_size
        stream = path.open("rb")
    except OSError as error:
        raise NotGgufError(path, error.strerror or str(error)) from error

    with stream:
        if (magic := stream.read(4)) != _MAGIC:
            raise NotGgufError(path, f"it starts with {magic!r}" if magic else "it is empty")

        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(path, data).header()
            except (struct.error, IndexError, OverflowError) as error:
                raise TruncatedGgufError(path, size, None) from error
            except RecursionError as error:
                raise NotGgufError(path, "lists within lists without end") from error


class _Reader:
    """Walks through the header once."""

    __slots__ = ("_at", "_data", "_path")

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._at = 4

    def header(self) -> Header:
        version = self._number("I")
        if version not in _VERSIONS:
            raise NotGgufError(self._path, f"format version {version}; known are {_VERSIONS[0]} and {_VERSIONS[1]}")

        tensors, pairs = self._number("Q"), self._number("Q")
        values: dict[str, Any] = {}
        tokens, types = [], []
        for _ in range(pairs):
            key = self._text()
            kind = self._number("I")
            if key == "tokenizer.ggml.tokens":
                tokens = self._strings()
            elif key == "tokenizer.ggml.token_type":
                types = self._array()
            elif kind == _ARRAY:
                self._skip_array()
            else:
                values[key] = self._value(kind)

        alignment = values.get("general.alignment", _DEFAULT_ALIGNMENT)
        if type(alignment) is not int or alignment < 1:
            raise NotGgufError(self._path, f"it is aligned to {alignment!r}")

        self._check_size(tensors, alignment)
        special = tuple(
            token.decode(errors="replace")
            for token, type_ in zip(tokens, types, strict=False)
            if type_ in _SPECIAL_TOKEN_TYPES and len(token) > 1 and not token.isspace()
        )
        return Header(self._path, len(self._data), values, special)

    def _check_size(self, tensors: int, alignment: int) -> None:
        end = 0
        for _ in range(tensors):
            self._text()
            shape = [self._number("Q") for _ in range(self._number("I"))]
            elements, size = _BLOCKS.get(self._number("I"), (1, 0))
            end = max(end, self._number("Q") + math.prod(shape) // elements * size)

        start = -(-self._at // alignment) * alignment
        if start + end > len(self._data):
            raise TruncatedGgufError(self._path, len(self._data), start + end)

    # -- values --------------------------------------------------------------------------------------------------

    def _number(self, code: str) -> int:
        (value,) = struct.unpack_from(f"<{code}", self._data, self._at)
        self._at += struct.calcsize(f"<{code}")
        return value  # type: ignore[no-any-return] # the callers ask for whole numbers

    def _bytes(self) -> bytes:
        (length,) = _LENGTH.unpack_from(self._data, self._at)
        start = self._at + 8
        self._at = start + length
        if self._at > len(self._data):
            raise IndexError(self._at)

        return self._data[start : self._at]

    def _text(self) -> str:
        return self._bytes().decode(errors="replace")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()

        if kind not in _SCALARS:
            raise NotGgufError(self._path, f"metadata of unknown type {kind}")

        return self._number(_SCALARS[kind])

    def _count(self) -> int:
        """How many tokens there are."""
        count = self._number("Q")
        if count > _MOST_TOKENS:
            raise NotGgufError(self._path, f"a vocabulary of {count} tokens")

        return count

    def _strings(self) -> list[bytes]:
        _, count = self._number("I"), self._count()
        return [self._bytes() for _ in range(count)]

    def _array(self) -> list[Any]:
        kind, count = self._number("I"), self._count()
        code = f"<{count}{_SCALARS.get(kind, 'B')}"
        values = list(struct.unpack_from(code, self._data, self._at))
        self._at += struct.calcsize(code)
        return values

    def _skip_array(self) -> None:
        kind, count = self._number("I"), self._number("Q")
        if kind == _STRING:
            self._skip_strings(count)
        elif kind == _ARRAY:
            for _ in range(count):
                self._skip_array()
        elif kind in _SCALARS:
            self._at += count * struct.calcsize(f"<{_SCALARS[kind]}")
        else:
            raise NotGgufError(self._path, f"metadata of unknown type {kind}")

    def _skip_strings(self, count: int) -> None:
        """The merges of a tokenizer are some 150,000 strings: nothing is copied."""
        at, data, length_at = self._at, self._data, _LENGTH.unpack_from
        for _ in range(count):
            at += 8 + length_at(data, at)[0]

        self._at = at
