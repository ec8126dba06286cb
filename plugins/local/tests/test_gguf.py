from __future__ import annotations

import pytest

from ropewalk_local.errors import NotGgufError, TruncatedGgufError
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
