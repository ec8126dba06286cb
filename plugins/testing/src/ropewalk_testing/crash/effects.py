"""The journal of side effects: what tools really did, written before they return, whatever the log says."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Happened:
    """One side effect.

    Attributes:
        phase: 0 before the first kill, 1 after it, and so on.
        tool: Name of the tool, or of what else had an effect.
        use: The tool-use id.
        key: The idempotency key that the tool was given.
        effect: What running it twice does, as the tool declares it.
    """

    phase: int
    tool: str
    use: str
    key: str
    effect: str


class EffectJournal:
    """Notes side effects in a file.

    Attributes:
        path: The file; one JSON object per line.
        phase: What `note` writes as phase.
    """

    def __init__(self, path: Path, phase: int = 0) -> None:
        self.path = path
        self.phase = phase

    def note(self, tool: str, use: str, key: str, effect: str = "irreversible") -> None:
        """Notes one effect; on return the operating system has it, which outlives the process."""
        line = json.dumps([self.phase, tool, use, key, effect]) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def read(self) -> list[Happened]:
        """Everything noted so far."""
        if not self.path.exists():
            return []

        return [Happened(*json.loads(line)) for line in self.path.read_text(encoding="utf-8").splitlines()]
