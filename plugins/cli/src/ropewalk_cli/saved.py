"""The file of a paused run: what the agent is made of, its snapshot, and what it waits for. JSON, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ropewalk.errors import RopewalkError

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult

VERSION: Final = 1
PAUSES: Final = frozenset({"checkpoint", "interrupt"})
"""Stop reasons of a run that waits."""

_KEYS: Final = {"version", "agent", "snapshot", "resume"}


class SavedRunError(RopewalkError):
    """A file holds no paused run, or cannot be read or written."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of `ropewalk run` that make an agent; see there."""

    model: str | None = None
    agent: str | None = None
    tools: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    system: str | None = None
    approve: tuple[str, ...] = ()
    checkpointing: bool = False

    def portable(self) -> AgentOptions:
        """The same from whatever folder the program is called; modules stay what they are."""
        agent = self.agent
        if agent is not None:
            place, colon, name = agent.rpartition(":")
            agent = f"{_absolute(place)}{colon}{name}"

        return replace(self, agent=agent, tools=tuple(map(_absolute, self.tools)))


def _absolute(path: str) -> str:
    return str(Path(path).resolve()) if path.endswith(".py") else path


@dataclass(frozen=True, slots=True)
class SavedRun:
    """What the file holds.

    Attributes:
        options: What the agent is made of.
        snapshot: The agent's snapshot, as JSON.
        resume: The payload `{"checkpointResume": ...}`, or `{"interrupts": [...]}`, the questions that are open; None
            when nothing waits and the history is to be gone on with.
    """

    options: AgentOptions
    snapshot: dict[str, Any]
    resume: dict[str, Any] | None

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The open questions, each with id, name and reason."""
        return list((self.resume or {}).get("interrupts", ()))


def saved_run(agent: Any, options: AgentOptions, result: AgentResult | None) -> SavedRun:
    """What is to be saved of an agent.

    Args:
        agent: The agent, which does not run.
        options: What it is made of.
        result: That of the paused run; None when the run was broken off.
    """
    resume: dict[str, Any] | None = None
    if result is not None and result.stop_reason == "checkpoint":
        resume = {"checkpointResume": {"checkpoint": result.to_dict()["checkpoint"]}}
    elif result is not None:
        resume = {"interrupts": [_question(each) for each in result.interrupts or ()]}

    return SavedRun(options.portable(), agent.take_snapshot(preset="session").to_dict(), resume)


def _question(interrupt: Any) -> dict[str, Any]:
    return {"id": interrupt.id, "name": interrupt.name, "reason": interrupt.reason}


# -- the file ------------------------------------------------------------------------------------------------------


def check_place(path: Path) -> None:
    """Looks whether a run can be saved there, before it begins.

    Raises:
        SavedRunError: There is something already, or the folder cannot be written to.
    """
    if path.exists() and (not path.is_file() or path.stat().st_size):
        raise SavedRunError(
            f"{path} exists: `ropewalk resume {path}` goes on with it if it is a paused run; else remove it or name "
            "another file"
        )

    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SavedRunError(f"{path} cannot be written: there is no folder {folder} that may be written to: make it")


def write(path: Path, saved: SavedRun) -> None:
    """Writes the file as a whole: whoever reads it sees the old one or the new one. Only its owner may read it.

    Raises:
        SavedRunError: It cannot be written.
    """
    plain = {"version": VERSION, "agent": asdict(saved.options), "snapshot": saved.snapshot, "resume": saved.resume}
    text = json.dumps(plain, allow_nan=False, indent=1)
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()

        raise SavedRunError(f"{path} cannot be written: {error.strerror or error}: the paused run is lost") from error


def read(path: Path) -> SavedRun:
    """Reads the file.

    Raises:
        SavedRunError: There is none, or it holds something else.
    """
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SavedRunError(
            f"there is no file {path}, and no session of that name: `ropewalk run --snapshot` writes a file when a run "
            "pauses, and it is removed when the run has ended; `ropewalk sessions list` shows sessions"
        ) from None
    except OSError as error:
        raise SavedRunError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise SavedRunError(f"{path} is no JSON, or is torn ({error}): it cannot be gone on with") from error

    problem = _problem(plain)
    if problem:
        raise SavedRunError(f"{path} holds no paused run: {problem}: name a file that `ropewalk run --snapshot` wrote")

    options: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in plain["agent"].items()
    }
    return SavedRun(AgentOptions(**options), plain["snapshot"], plain["resume"])


def _problem(plain: Any) -> str | None:
    if not isinstance(plain, dict) or not _KEYS & set(plain):
        return "it is something else"

    if plain.get("version") != VERSION:
        return f"its version is {plain.get('version')!r}, and this is {VERSION}"

    if set(plain) != _KEYS:
        return f"its keys are {', '.join(sorted(plain))}"

    resume = plain["resume"]
    if resume is not None and not _is_payload(resume):
        return '"resume" is no payload'

    if not isinstance(plain["snapshot"], dict):
        return '"snapshot" is no snapshot'

    return None if _are_options(plain["agent"]) else '"agent" does not say how the agent is made'


def _is_payload(resume: Any) -> bool:
    if not isinstance(resume, dict) or len(resume) != 1:
        return False

    if isinstance(resume.get("checkpointResume"), dict):
        return True

    questions = resume.get("interrupts")
    return isinstance(questions, list) and all(
        isinstance(each, dict) and isinstance(each.get("id"), str) and isinstance(each.get("name"), str)
        for each in questions
    )


def _are_options(options: Any) -> bool:
    if not isinstance(options, dict) or set(options) != {field.name for field in fields(AgentOptions)}:
        return False

    texts = [options[key] for key in ("model", "agent", "system") if options[key] is not None]
    for key in ("tools", "plugins", "approve"):
        if not isinstance(options[key], list):
            return False

        texts.extend(options[key])

    return all(isinstance(each, str) for each in texts) and isinstance(options["checkpointing"], bool)
