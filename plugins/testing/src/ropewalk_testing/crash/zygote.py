"""The process whose children are killed: it has everything imported and runs no thread, so that forking it is safe.

Started as a program by `ropewalk_testing.crash.run`: the job comes pickled on standard input, the report goes, pickled,
into the file that is named.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import json
import os
import pickle
import random
import shutil
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from ropewalk.kits.sessions import SessionManager
from ropewalk_testing.crash.driving import Job, act, drive
from ropewalk_testing.crash.effects import EffectJournal
from ropewalk_testing.crash.judging import Case, problems
from ropewalk_testing.crash.killing import KillPoint, Step, kill_points
from ropewalk_testing.crash.report import Finding, Report
from ropewalk_testing.crash.scenario import Scenario
from ropewalk_testing.memory_store import MemoryLogStore

SECONDS: Final = 60.0
"""How long a child may take."""

_POLL: Final = 0.002
_TELLS: Final = 1_500


class ChildFailedError(Exception):
    """A child ended in an error; the message is its traceback."""


def in_child(work: Callable[[], None], errors: Path) -> bool:
    """Runs something in a forked child.

    Args:
        work: What to run; what it finds it must write to files.
        errors: Where the child's traceback goes.

    Returns:
        Whether it came to its end; False when it was killed.

    Raises:
        ChildFailedError: It raised, or took too long.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - told through the file; the child must not go on as its parent
            errors.write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(code)

    status = _wait(child)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False

    if status:
        told = errors.read_text(encoding="utf-8") if errors.exists() else f"it ended with status {status}"
        raise ChildFailedError(told)

    return True


def _wait(child: int) -> int:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status

        time.sleep(_POLL)

    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise ChildFailedError(f"the child had not ended after {SECONDS:g} s")


class Zygote:
    """Kills children, has others go on, and judges.

    Args:
        job: What it is about.
        folder: Where every run gets a folder of its own.
        crashes: How many processes in a row are killed: 1, or 2 to kill the one that goes on as well.
        seed: Chooses where the second one is killed.
    """

    def __init__(self, job: Job, folder: Path, crashes: int = 1, seed: int = 0) -> None:
        self._job = job
        self._folder = folder
        self._crashes = crashes
        self._random = random.Random(seed)  # noqa: S311 - chooses tests
        self._baseline: dict[str, Any] = {}

    def baseline(self) -> list[Step]:
        """Runs without a kill, and tells the writes.

        Raises:
            ChildFailedError: The run fails even so.
        """
        folder = self._fresh("baseline")
        try:
            in_child(lambda: act(self._job, folder, None, 0), folder / "error")
        except ChildFailedError as error:
            raise ChildFailedError(f"nobody was killed, and already: {error}") from None

        self._baseline = _load(folder / "0-end.json")
        case = Case(self._job.scenario, self._baseline, self._baseline, [], EffectJournal(folder / "effects").read())
        wrong = problems(case)
        if wrong:
            raise ChildFailedError("nobody was killed, and already:\n" + "\n".join(wrong))

        preload(self._baseline.pop("modules"))
        return [Step(tuple(kinds), replaces) for kinds, replaces in self._baseline["steps"]]

    def kill(self, number: int, point: KillPoint) -> tuple[bool, list[str]]:
        """Kills at one place, and goes on.

        Returns:
            Whether the process came by there, and what was wrong afterwards.
        """
        folder = self._fresh(f"kill{number}")
        kills: list[KillPoint | None] = [point]
        if self._crashes > 1:
            kills.append(KillPoint(self._random.randrange(6), self._random.choice((0, 1_000)), "any", "again"))

        try:
            phase = self._through(folder, [*kills, None])
        except ChildFailedError as error:
            return True, [f"the process that went on failed: {str(error)[-_TELLS:]}"]

        if phase == 0:
            return False, []

        logs = [_load(folder / f"{n}-before.json") for n in range(1, phase + 1)]
        end, happened = _load(folder / f"{phase}-end.json"), EffectJournal(folder / "effects").read()
        wrong = problems(Case(self._job.scenario, self._baseline, end, logs, happened))
        if not wrong:
            shutil.rmtree(folder, ignore_errors=True)

        return True, wrong

    def _through(self, folder: Path, kills: Sequence[KillPoint | None]) -> int:
        """Runs process after process until one comes to its end; which it was."""
        for phase, point in enumerate(kills):

            def work(phase: int = phase, point: KillPoint | None = point) -> None:
                act(self._job, folder, point, phase)

            if in_child(work, folder / f"{phase}-error"):
                return phase

        raise ChildFailedError("the last process was killed by somebody else")

    def _fresh(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(parents=True)
        return folder


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def study(job: Job, folder: Path, options: dict[str, Any]) -> Report:
    """Kills a run at every place, or at a sample of places.

    Raises:
        ChildFailedError: The run fails without being killed.
        RuntimeError: The process has threads, so that forking it is not safe.
    """
    began = time.monotonic()
    warm(folder / "warm")
    zygote = Zygote(job, folder, options["crashes"], options["seed"])
    points = kill_points(zygote.baseline(), torn=options["torn"])
    gc.freeze()  # children need not look at, and so copy, what they share
    report = Report(points=len(points))
    chosen = list(enumerate(points))
    if options["sample"] is not None and options["sample"] < len(chosen):
        chosen = sorted(random.Random(options["seed"]).sample(chosen, options["sample"]))  # noqa: S311 - chooses tests

    part, parts = options["part"]
    for number, point in chosen[part::parts]:
        if threading.active_count() > 1:
            raise RuntimeError(
                f"threads run in the process that forks ({threading.enumerate()}): importing the store, or making the "
                "scenario, must not start any"
            )

        reached, wrong = zygote.kill(number, point)
        if not reached:
            report.missed += 1
            continue

        report.killed[point.kind] += 1
        if wrong:
            report.findings.append(Finding(point, tuple(wrong)))

    report.seconds = time.monotonic() - began
    return report


def warm(folder: Path) -> None:
    """Runs the kit's own scenario over a store in memory, so that children find everything imported."""
    folder.mkdir()
    scenario = Scenario()
    agent = scenario.agent(SessionManager("warm", MemoryLogStore()), EffectJournal(folder / "effects"))
    asyncio.run(drive(agent, scenario, []))


def preload(names: Sequence[str]) -> None:
    """Imports here what a child had to import, such as a database's driver, so that not every child does it anew."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):  # some names in sys.modules are no modules that can be imported
                importlib.import_module(name)


def _import_file(name: str, file: str) -> None:
    """Makes a module of the caller known here that only its file tells of, such as a test's."""
    if name in sys.modules:
        return

    with contextlib.suppress(ImportError):
        found = importlib.import_module(name)
        if getattr(found, "__file__", None) == file:
            return

        sys.modules.pop(name, None)

    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")

    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _make_parents(name)


def _make_parents(name: str) -> None:
    """Makes stand-ins for the packages above a module that only its file tells of: pickle imports the first of them."""
    parent = name.rpartition(".")[0]
    while parent:
        if parent not in sys.modules:
            try:
                importlib.import_module(parent)
            except ImportError:
                sys.modules[parent] = types.ModuleType(parent)

        parent = parent.rpartition(".")[0]


def main(answer: str) -> None:
    """Reads the job, does it, and writes the report, or the error that it met."""
    given = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    sys.path[:] = given["path"]
    for name, file in given["modules"]:
        _import_file(name, file)

    result: Any
    try:
        result = study(pickle.loads(given["job"]), Path(given["folder"]), given["options"])  # noqa: S301 - as above
    except Exception:  # noqa: BLE001 - raised again by the process that started this one
        result = traceback.format_exc()

    Path(answer).write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    from ropewalk_testing.crash.zygote import main as start  # the classes of the job are those of the imported module

    start(sys.argv[1])
