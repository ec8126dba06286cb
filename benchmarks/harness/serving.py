"""The inside of a worker process: one driver, asked for one case after the other.

A command is one JSON object on a line of stdin, the answer one on stdout; what a framework prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Coroutine
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from harness import cases
from harness.driver import Driver
from harness.session_cases import session_open, session_turn
from harness.store_case import persist

CASES: Final[dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]]] = {
    "construct": cases.construct,
    "memory": cases.memory,
    "cycle": cases.cycle,
    "growth": cases.growth,
    "later_turn": cases.later_turn,
    "stream": cases.stream,
    "parallel": cases.parallel,
    "concurrency": cases.concurrency,
    "persist": persist,
    "session_turn": session_turn,
    "session_open": session_open,
}


def load_driver(module: str) -> Driver:
    """The driver in a module: the last subclass that it defines."""
    found = importlib.import_module(module)
    classes = [
        value
        for value in vars(found).values()
        if isinstance(value, type) and issubclass(value, Driver) and value.__module__ == module
    ]
    return classes[-1]()


def information(driver: Driver) -> dict[str, Any]:
    """What a report says about a framework."""
    try:
        known = version(driver.distribution) if driver.distribution else None
    except PackageNotFoundError:
        known = None

    return {"name": driver.name, "version": known, "import": driver.import_statement}


def perform(driver: Driver, case: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Runs a case: its numbers, or `skip` or `error` with the reason."""
    if case in driver.skip:
        return {"skip": driver.skip[case]}

    if case == "stream" and not arguments.get("consumer", True) and not driver.streams_always:
        return {"skip": "without a consumer it does not stream"}

    gc.collect()
    try:
        numbers = asyncio.run(CASES[case](driver, **arguments))
        return json.loads(json.dumps(numbers), parse_float=lambda text: round(float(text), 3))  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001 - a framework may raise anything; the others go on
        return {"error": f"{type(error).__name__}: {str(error)[:300]}", "trace": traceback.format_exc()[-1500:]}


def serve(driver: Driver) -> None:
    """Answers commands until stdin ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    loaded = False
    for line in sys.stdin:
        command = json.loads(line)
        if command["case"] == "information":
            answer = information(driver)
        else:
            if not loaded:
                driver.load()
                loaded = True

            answer = perform(driver, command["case"], command.get("arguments", {}))

        print(json.dumps(answer), file=out, flush=True)
