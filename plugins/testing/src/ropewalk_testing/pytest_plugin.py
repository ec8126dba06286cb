"""Fixtures for pytest, there as soon as the package is installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropewalk_testing.scripted import ScriptedModel
pytest.register_assert_rewrite("ropewalk_testing.contract")


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Makes models: `scripted("hello", use("add"), record=False)`. Their stalls end with the test."""
    from ropewalk_testing.scripted import ScriptedModel

    models: list[ScriptedModel] = []

    def make(*turns: Any, **options: Any) -> ScriptedModel:
        model = ScriptedModel(turns, **options)
        models.append(model)
        return model

    yield make
    for model in models:
        model.release()


@pytest.fixture
def ropewalk_env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without any `ROPEWALK_*` variable, so that the developer's own do not leak into tests."""
    for name in [name for name in os.environ if name.startswith("ROPEWALK_")]:
        monkeypatch.delenv(name)

    return monkeypatch


@pytest.fixture
def no_plugins_env(ropewalk_env: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As `ropewalk_env`, and no installed plugin is active unless a test asks for it."""
    ropewalk_env.setenv("ROPEWALK_PLUGINS", "none")
    return ropewalk_env
