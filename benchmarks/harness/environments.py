"""Which frameworks there are, and where they are installed.

The floor and Ropewalk run in the environment that this script runs in. Every other one gets an environment of its own
in the cache folder, made when it is asked for and kept until its requirements change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from harness.workers import ROOT, Peer

HERE: Final = {"ropewalk": "ropewalk_driver", "floor": "floor"}
# name: the driver's module and the requirements file, which two settings of one framework share
ELSEWHERE: Final = {
    "strands": ("peers.strands", "strands"),
    "strands_default": ("peers.strands_default", "strands"),
    "pydantic_ai": ("peers.pydantic_ai", "pydantic_ai"),
    "openai_agents": ("peers.openai_agents", "openai_agents"),
    "langgraph": ("peers.langgraph", "langgraph"),
    "google_adk": ("peers.google_adk", "google_adk"),
    "agno": ("peers.agno", "agno"),
    "smolagents": ("peers.smolagents", "smolagents"),
}
NAMES: Final = (*HERE, *ELSEWHERE)
REQUIREMENTS: Final = ROOT / "peers" / "requirements"


def cache_folder() -> Path:
    """Where environments are kept: $ROPEWALK_BENCH_HOME, or the user's cache folder."""
    given = os.environ.get("ROPEWALK_BENCH_HOME")
    if given:
        return Path(given)

    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ropewalk-bench"


def peer_named(name: str) -> Peer:
    """The framework of a name, installed if need be.

    Raises:
        ValueError: There is none of this name.
        CalledProcessError: It could not be installed.
    """
    if name in HERE:
        return Peer(name, HERE[name], sys.executable)

    if name not in ELSEWHERE:
        raise ValueError(f"there is no peer {name!r}: the peers are {', '.join(NAMES)}")

    module, requirements = ELSEWHERE[name]
    return Peer(name, module, str(_installed(requirements)))


def _installed(name: str) -> Path:
    """The interpreter of an environment with the pinned requirements."""
    folder, wanted = cache_folder() / name, REQUIREMENTS / f"{name}.txt"
    python, noted = folder / "bin" / "python", folder / "requirements.txt"
    if noted.exists() and noted.read_bytes() == wanted.read_bytes():
        return python

    shutil.rmtree(folder, ignore_errors=True)
    for command in _commands(folder, python, wanted):
        subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 - the installer

    shutil.copy(wanted, noted)  # last: its presence says that the environment is complete
    return python


def _commands(folder: Path, python: Path, wanted: Path) -> list[list[str]]:
    uv = shutil.which("uv")
    if uv is not None:
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), "-r", str(wanted)],
        ]

    return [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted)],
    ]
