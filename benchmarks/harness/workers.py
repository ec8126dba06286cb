"""The outside of worker processes: starting them, asking them, and giving up on them."""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).parent.parent
# PYTHONDONTWRITEBYTECODE, for one, would make every import a first one.
ENVIRONMENT: Final = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
_SECONDS: Final = 240.0

_IMPORT: Final = """
import json, sys, time
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS:"))
modules, memory, cpu, wall = len(sys.modules), resident(), time.process_time(), time.perf_counter()
exec({statement!r})
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps(dict(wall_us=wall * 1e6, cpu_us=cpu * 1e6, modules=len(sys.modules) - modules,
                      resident_mib=(resident() - memory) / 1024)))
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework under measurement: its driver's module and the interpreter that has it installed."""

    name: str
    module: str
    python: str


class Worker:
    """A process with one driver, started when it is first asked."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._process: subprocess.Popen[str] | None = None

    def ask(self, case: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to one command; an `error` when the process dies or is silent for too long."""
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(json.dumps({"case": case, "arguments": arguments or {}}) + "\n")
            process.stdin.flush()
        except OSError as error:
            self.close()
            return {"error": f"the worker is gone: {error}"}

        if not select.select([process.stdout], [], [], _SECONDS)[0]:
            self.close()
            return {"error": f"no answer after {_SECONDS:.0f} s"}

        line = process.stdout.readline()
        if not line:
            self.close()
            return {"error": "the worker died: run benchmarks/worker.py by hand to see why"}

        answer: dict[str, Any] = json.loads(line)
        return answer

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603 - this folder's own script
                [self._peer.python, str(ROOT / "worker.py"), self._peer.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=ENVIRONMENT,
            )

        return self._process

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is None:
            return

        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask_fresh(peer: Peer, case: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """As `Worker.ask`, in a process of its own."""
    with Worker(peer) as worker:
        return worker.ask(case, arguments)


def time_import(peer: Peer, statement: str) -> dict[str, Any]:
    """What an import costs in a fresh interpreter."""
    command = [peer.python, "-P", "-c", _IMPORT.format(statement=statement)]
    try:
        done = subprocess.run(  # noqa: S603 - the statement of a driver
            command, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer after {_SECONDS:.0f} s"}

    if done.returncode:
        return {"error": done.stderr.strip()[-300:]}

    numbers: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return numbers
