from __future__ import annotations

import sys

import pytest

from ropewalk_local import memory
from ropewalk_local.errors import NotEnoughMemoryError
from ropewalk_local.gguf import read_header


def test_the_need_grows_with_the_context(write_gguf):
    header = read_header(write_gguf())

    assert memory.needed_bytes(header, 2048) - memory.needed_bytes(header, 1024) == 1024 * 256


def test_a_model_that_does_not_fit_is_refused_with_both_numbers(write_gguf, monkeypatch):
    header = read_header(write_gguf())
    monkeypatch.setattr(memory, "available_bytes", lambda: 100_000_000)

    with pytest.raises(NotEnoughMemoryError, match=r"needs about 150\.\d MB of memory and 100\.0 MB are available"):
        memory.check_memory(header, 1024)


@pytest.mark.parametrize("available", [None, 10**12])
def test_a_model_is_loaded_when_it_fits_or_nobody_knows(write_gguf, monkeypatch, available):
    monkeypatch.setattr(memory, "available_bytes", lambda: available)

    memory.check_memory(read_header(write_gguf()), 1024)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_a_containers_limit_counts(tmp_path, monkeypatch):
    (tmp_path / "max").write_text("5000\n")
    (tmp_path / "current").write_text("2000\n")
    (tmp_path / "unlimited").write_text("max\n")
    group = (str(tmp_path / "max"), str(tmp_path / "current"))
    monkeypatch.setattr(memory, "_CGROUPS", (group, (str(tmp_path / "unlimited"), group[1]), ("/no", "/no")))

    assert memory.available_bytes() == 3000


def test_other_systems_are_not_asked(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")

    assert memory.available_bytes() is None
