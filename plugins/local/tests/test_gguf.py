from __future__ import annotations

import contextlib
import random
import struct

import pytest

from ropewalk_local.errors import LocalModelError, NotGgufError, TruncatedGgufError
from ropewalk_local.gguf import read_header


def test_a_header_tells_what_planning_needs(write_gguf):
    header = read_header(write_gguf())

    assert header.trained_context == 2048
    assert header.special_tokens == ("<|im_end|>", "<|im_start|>")
    assert header.kv_bytes_per_token() == 2 * 2 * (16 + 16) * 2
    assert header.values["general.architecture"] == "llama"


@pytest.mark.parametrize("missing", [1, 100, 4096])
def test_a_file_without_its_end_is_refused_with_both_sizes(write_gguf, missing):
    with pytest.raises(TruncatedGgufError, match=r"cut short: it has .* of the 4.* that its header announces"):
        read_header(write_gguf(missing=missing))


@pytest.mark.parametrize("missing", [4200, 4300, 4600])
def test_a_file_that_ends_inside_its_header_is_refused(write_gguf, missing):
    with pytest.raises(TruncatedGgufError, match="ends inside its header"):
        read_header(write_gguf(missing=missing))


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "it is empty"), (b"PK\x03\x04rest", "it starts with b'PK"), (b"GGU", "it starts with b'GGU'")],
)
def test_another_kind_of_file_is_refused(tmp_path, content, reason):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)

    with pytest.raises(NotGgufError, match=reason):
        read_header(path)


def test_an_unknown_version_is_refused(write_gguf):
    with pytest.raises(NotGgufError, match="format version 9"):
        read_header(write_gguf(version=9))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(NotGgufError, match="No such file"):
        read_header(tmp_path / "no.gguf")

    with pytest.raises(NotGgufError, match=r"directory|denied"):
        read_header(tmp_path)


def test_a_damaged_header_is_one_typed_error(write_gguf):
    whole = write_gguf().read_bytes()
    header = len(whole) - 4096
    chance = random.Random(7)
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 2])):
            at, length = chance.randrange(4, header - 8), chance.choice([1, 4, 8])
            data[at : at + length] = chance.choice([b"\xff", b"\0", b"\x7f", b"\x09"]) * length

        path = write_gguf()
        path.write_bytes(data)
        with contextlib.suppress(LocalModelError):
            read_header(path)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (struct.pack("<II", 4, 0), "aligned to 0"),
        (struct.pack("<IQ", 8, 3) + b"odd", "aligned to 'odd'"),
        (struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 20_000, "without end"),
    ],
)
def test_values_that_no_file_has_are_refused(tmp_path, value, reason):
    key = b"general.alignment"
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, len(key)) + key + value)

    with pytest.raises(NotGgufError, match=reason):
        read_header(path)


@pytest.mark.parametrize(("name", "kind"), [("tokens", 8), ("token_type", 0)])
def test_a_vocabulary_without_end_does_not_fill_the_memory(tmp_path, name, kind):
    key = f"tokenizer.ggml.{name}".encode()
    path = tmp_path / "x.gguf"
    head = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, len(key)) + key + struct.pack("<IIQ", 9, kind, 1 << 25)
    path.write_bytes(head)

    with pytest.raises(NotGgufError, match="a vocabulary of 33554432 tokens"):
        read_header(path)
