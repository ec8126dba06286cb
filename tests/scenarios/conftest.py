"""Tools that many scenarios call, and processes that do one thing at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ropewalk import tool


@pytest.fixture
def calls():
    """What the tools of `calculators` were called with."""
    return []


@pytest.fixture
def calculators(calls):
    """Two tools that note their calls."""

    @tool
    async def add(a: int, b: int) -> str:
        """Adds."""
        calls.append(("add", a, b))
        return str(a + b)

    @tool
    async def mul(a: int, b: int) -> str:
        """Multiplies."""
        calls.append(("mul", a, b))
        return str(a * b)

    return [add, mul]


@pytest.fixture
def purged():
    """The prefixes that were purged."""
    return []


@pytest.fixture
def purge(purged):
    """A tool whose default is its widest action."""

    @tool
    def purge(prefix: str = "*") -> str:
        """Deletes everything that starts with the prefix."""
        purged.append(prefix)
        return "purged"

    return purge


def begun_together(code, *arguments):
    """Runs a script once for each list of arguments, all at once, and gives the words that each prints at its end.

    The script prints "ready" first, and waits for a line.
    """
    children = [
        subprocess.Popen([sys.executable, "-c", code, *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for each in arguments
    ]
    try:
        for child in children:
            assert child.stdout.readline() == "ready\n"

        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()

        told = [child.communicate(timeout=300)[0].split() for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()

    assert [child.returncode for child in children] == [0] * len(children)
    return told


@pytest.fixture
def race():
    return begun_together
