"""Model strings for trying things out without a model: `testing:...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import hookimpl
from ropewalk.errors import UnknownModelError
from ropewalk_testing.errors import ScriptError
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.turns import turn

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.model import ModelRequest

PREFIX = "testing:"


class TestingPlugin:
    """Provides `testing:echo`, `testing:silent` and `testing:FILE.json`.

    * `testing:echo` answers with the last text of the user.
    * `testing:silent` never answers, until it is cancelled.
    * `testing:FILE.json` plays the script in a file: a JSON list of turns, each a string, a content block, a list of
      them, or `{"turn": [...], "stop": ..., "deltas": ...}` with the options of `turn` that JSON can hold.
    """

    __test__ = False  # its name starts like that of a test class
    name = "testing"

    @hookimpl
    def provide_model(self, spec: str | None, agent: Agent) -> ScriptedModel | None:  # noqa: ARG002 - the hook's form
        """Makes the model of a `testing:` string; others are left alone."""
        if spec is None or not spec.startswith(PREFIX):
            return None

        what = spec.removeprefix(PREFIX)
        if what == "echo":
            return ScriptedModel(_echo, record=False)
        if what == "silent":
            return ScriptedModel(lambda _request: turn(stall=True), record=False)
        if what.endswith(".json"):
            return ScriptedModel(read_script(Path(what)))

        raise UnknownModelError(
            f"model {spec!r}: the plugin testing knows testing:echo, testing:silent and testing:FILE.json"
        )


def read_script(path: Path) -> list[Any]:
    """Reads a script from a JSON file.

    Raises:
        ScriptError: It cannot be read, is no JSON list, or has an unknown option.
    """
    try:
        turns = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScriptError(f"script {path}: {error}; give a JSON file that holds a list of turns") from error

    if not isinstance(turns, list):
        raise ScriptError(f"script {path} holds a {type(turns).__name__}: make it a list of turns")

    return [_from_json(path, i, each) for i, each in enumerate(turns)]


def _from_json(path: Path, place: int, value: Any) -> Any:
    if not (isinstance(value, dict) and "turn" in value):
        return value

    options = {key: each for key, each in value.items() if key != "turn"}
    if isinstance(options.get("usage"), list):
        options["usage"] = tuple(options["usage"])

    unknown = sorted(options.keys() - {"stop", "usage", "cut", "stall", "stall_first", "deltas", "raw"})
    if unknown:
        raise ScriptError(f"script {path}, turn {place}: unknown option {unknown[0]!r}; see ropewalk_testing.turn")

    blocks = value["turn"] if isinstance(value["turn"], list) else [value["turn"]]
    return turn(*blocks, **options)


def _echo(request: ModelRequest) -> str:
    for message in reversed(request.messages):
        texts: list[str] = [block["text"] for block in message["content"] if "text" in block]
        if message["role"] == "user" and texts:
            return texts[-1]

    return ""
