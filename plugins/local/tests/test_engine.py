from __future__ import annotations

import sys

import pytest

from ropewalk_local import engine as engines
from ropewalk_local import memory
from ropewalk_local.engine import EngineSettings, open_engine
from ropewalk_local.errors import LoadError, NotEnoughMemoryError, UnsupportedPlatformError
from ropewalk_local.gguf import read_header
from ropewalk_local.model import LocalModel

SETTINGS = EngineSettings(256, 1, 1)


def test_a_platform_without_the_runtime_gets_a_hint(write_gguf, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(UnsupportedPlatformError, match=r"pip install xllamacpp.*Platforms.*README"):
        open_engine(read_header(write_gguf()), SETTINGS)


def test_memory_is_checked_before_loading(write_gguf, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1)

    with pytest.raises(NotEnoughMemoryError):
        open_engine(read_header(write_gguf()), SETTINGS)


def test_the_check_can_be_left_out(write_gguf, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1)
    loaded = []
    monkeypatch.setattr(engines.Engine, "_load", lambda self, runtime: loaded.append(self.header.path))

    open_engine(read_header(write_gguf()), SETTINGS, check=False)

    assert loaded == [write_gguf()]
    engines.release_engines()


def test_a_file_that_llama_cpp_refuses_is_named(write_gguf):
    path = write_gguf()

    with pytest.raises(LoadError, match=r"llama\.cpp cannot load .*small\.gguf"):
        open_engine(read_header(path), SETTINGS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_ctx": 0}, "n_ctx is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"parallel": 0}, "parallel is 0"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        LocalModel(**fields)


def test_the_window_is_rounded_up_and_no_larger_than_what_the_model_was_trained_for(write_gguf):
    path = write_gguf()

    assert LocalModel(path, n_ctx=300).context_window == 512
    assert LocalModel(str(path), n_ctx=100_000).context_window == 2048
    assert LocalModel("no/such.gguf", n_ctx=100_000).context_window == 100_096
