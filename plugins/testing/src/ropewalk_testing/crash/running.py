"""Starts the process whose children are killed, and puts its report together."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ropewalk_testing.crash.driving import Job
from ropewalk_testing.crash.report import Report
from ropewalk_testing.crash.scenario import Scenario

if TYPE_CHECKING:
    from ropewalk.kits.sessions import LogStore

REPORTS: Final[list[tuple[str, Report]]] = []
"""What was run in this process; pytest lists it at its end."""


def run(
    store_factory: Callable[[Path], LogStore],
    scenario: Scenario | None = None,
    *,
    sample: int | None = None,
    seed: int = 0,
    crashes: int = 1,
    torn: bool = True,
    processes: int = 1,
    folder: Path | None = None,
) -> Report:
    """Kills a run before and after every record that it writes, goes on in another process, and compares.

    After each kill it must hold that no tool that had ended ran again, no irreversible one that had started ran again
    without a word, others ran again under the same key, and the history is valid and that of a run that nobody killed,
    but for results that nobody can know.

    Args:
        store_factory: Opens the store that a folder stands for: a function at the top level of a module, or a
            `functools.partial` of one. It is called in every process, with the same folder for the same run; a store
            that needs none (a database) may ignore it, for each run has a session id of its own.
        scenario: The run.
        sample: Kills at so many places only, chosen by `seed`; None for all.
        seed: Chooses the sample, and where the second process is killed.
        crashes: 2 kills the process that goes on as well.
        torn: Whether writes are also cut between two of their records, as after a power failure.
        processes: How many runs go on at once.
        folder: Where the runs leave what they were; those without faults are removed. Default: a temporary folder.

    Returns:
        The report; `check()` it.

    Raises:
        RuntimeError: The run fails although nobody is killed, or the system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise RuntimeError("the crash kit forks processes, which this system cannot: run it on Linux or macOS")

    began = time.monotonic()
    job = Job(store_factory, scenario or Scenario(), f"crash-{os.urandom(4).hex()}")
    options = {"sample": sample, "seed": seed, "crashes": crashes, "torn": torn}
    with tempfile.TemporaryDirectory(prefix="ropewalk-crash-") as temporary:
        place = Path(temporary) if folder is None else folder
        started = [_start(job, {**options, "part": (n, processes)}, place / f"part{n}") for n in range(processes)]
        try:
            reports = [_report(process, answer) for process, answer in started]
        finally:
            for process, _ in started:
                process.kill()
                process.wait()

    whole = Report(points=reports[0].points)
    for report in reports:
        whole.killed += report.killed
        whole.missed += report.missed
        whole.findings += report.findings

    whole.seconds = time.monotonic() - began
    REPORTS.append((getattr(store_factory, "__qualname__", repr(store_factory)), whole))
    return whole


def _start(job: Job, options: dict[str, Any], folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    folder.mkdir(parents=True)
    answer = folder / "report.pickle"
    given: dict[str, Any] = {
        "path": [str(Path(entry or ".").resolve()) for entry in sys.path],
        "modules": _modules(job),
        "job": pickle.dumps(job),
        "folder": str(folder),
        "options": options,
    }
    command = [sys.executable, "-m", "ropewalk_testing.crash.zygote", str(answer)]
    environment = {**os.environ, "ROPEWALK_PLUGINS": "none", "PYTHONPATH": os.pathsep.join(given["path"])}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - our own program
    if process.stdin is not None:
        process.stdin.write(pickle.dumps(given))
        process.stdin.close()

    return process, answer


def _report(process: subprocess.Popen[bytes], answer: Path) -> Report:
    code = process.wait()
    if not answer.exists():
        raise RuntimeError(f"the process whose children are killed ended with status {code}: see what it printed")

    found = pickle.loads(answer.read_bytes())  # noqa: S301 - from the process that was started
    if isinstance(found, Report):
        return found

    raise RuntimeError(f"the crash kit could not run:\n{found}")


def _modules(job: Job) -> list[tuple[str, str]]:
    """The modules that the other process needs, with their files: a test's may be importable by nothing else."""
    things: list[Any] = [job.store_factory, type(job.scenario)]
    modules: dict[str, str] = {}
    while things:
        thing = things.pop()
        if isinstance(thing, functools.partial):
            things += [thing.func, *thing.args, *thing.keywords.values()]

        name = getattr(thing, "__module__", None) or ""
        file = getattr(sys.modules.get(name), "__file__", None)
        if name == "__main__":
            raise RuntimeError(f"{thing!r} is defined in a script: put it into a module of its own")

        if file is not None and not name.startswith(("functools", "ropewalk_testing.")):
            modules[name] = file

    return list(modules.items())
