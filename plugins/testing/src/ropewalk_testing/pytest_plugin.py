"""Fixtures for pytest, there as soon as the package is installed."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from ropewalk_testing.cassettes import Cassette
    from ropewalk_testing.scripted import ScriptedModel

pytest.register_assert_rewrite(
    "ropewalk_testing.contract",
    "ropewalk_testing.model_conformance",
    "ropewalk_testing.roles",
    "ropewalk_testing.store_conformance",
)

_FAILED: Final = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --record-cassettes."""
    group = parser.getgroup("ropewalk")
    group.addoption(
        "--record-cassettes",
        action="store_true",
        help="let the fixture `cassette` call the real models and record them, in place of playing the recordings",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers whether the test passed so far, for the end of the fixture `cassette`."""
    report = yield
    if not report.passed:
        item.stash[_FAILED] = True

    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tells how many processes the crash kit has killed."""
    kit = sys.modules.get("ropewalk_testing.crash.running")
    if kit is not None and kit.REPORTS:
        terminalreporter.section("crash kit")
        for name, report in kit.REPORTS:
            terminalreporter.line(f"{name}: {report}")


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


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cassette]]:
    """Makes cassettes: `cassette(lambda: BedrockModel(...), name="", redact=[...], ignore=[...])`.

    The file is `cassettes/MODULE/TEST.json` beside the test's own. It is played; with `--record-cassettes` the model is
    made, called and recorded. A test that passes must have made all calls of the recording.
    """
    from ropewalk_testing.cassettes import Cassette

    record = bool(request.config.getoption("--record-cassettes"))
    made: list[Cassette] = []

    def make(model: Any = None, *, name: str = "", **options: Any) -> Cassette:
        path = _cassette_path(request.path, request.node.nodeid, name)
        if any(each.path == path for each in made):
            raise ValueError(f"this test has a cassette {path.name} already: give the second one a name=...")

        made.append(Cassette(path, model=model, record=record, **options))
        return made[-1]

    yield make
    if not request.node.stash.get(_FAILED, False):
        for each in made:
            each.check_used_up()


def _cassette_path(module: Path, nodeid: str, name: str) -> Path:
    test = ".".join([*nodeid.split("::")[1:], *([name] if name else [])])
    return module.parent / "cassettes" / module.stem / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', test).strip('-')}.json"
