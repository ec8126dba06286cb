"""Where a log is: a folder for its session, in it a folder for its agent, in it the log and what belongs to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ropewalk.kits.sessions import LogKey
from ropewalk.kits.sessions.names import safe_name
from ropewalk_session_file.files import check_folder, private_folder

LOG: Final = "log.jsonl"
LOCK: Final = "lock"
_NEW: Final = f"{LOG}.new"
_ASIDE: Final = re.compile(r"set-aside-[0-9]+\.jsonl")


class Place:
    """The paths of one log.

    Args:
        root: The folder of all sessions.
        key: Which log.

    Attributes:
        key: Which log.
        session: The folder of the session.
        folder: The folder of the log.
        log: The log.
        lock: What a writer holds.
    """

    __slots__ = ("folder", "key", "lock", "log", "session")

    def __init__(self, root: Path, key: LogKey) -> None:
        self.key = key
        self.session = root / safe_name(key.session_id)
        self.folder = self.session / safe_name(key.agent_id)
        self.log = self.folder / LOG
        self.lock = self.folder / LOCK

    @property
    def named(self) -> str:
        """The log as errors name it."""
        return f"session {self.key.session_id!r}, agent {self.key.agent_id!r} ({self.log})"

    def check(self) -> None:
        """Refuses folders that are links.

        Raises:
            FileNotFoundError: There is no such folder.
            OSError: One is a link, or no folder.
        """
        check_folder(self.session)
        check_folder(self.folder)

    def make(self) -> None:
        """Makes the folders that are not there.

        Raises:
            OSError: One cannot be made, or is a link.
        """
        try:
            self.check()
        except FileNotFoundError:
            self.session.parent.mkdir(0o700, parents=True, exist_ok=True)
            private_folder(self.session)
            private_folder(self.folder)

    def aside(self) -> list[Path]:
        """What was set aside of the log, the oldest first."""
        found = [path for path in self._files() if _ASIDE.fullmatch(path.name)]
        return sorted(found, key=lambda path: (len(path.name), path.name))

    def next_aside(self) -> Path:
        """A name for what is to be set aside."""
        numbers = [int(path.stem.rpartition("-")[2]) for path in self.aside()]
        return self.folder / f"set-aside-{max(numbers, default=0) + 1}.jsonl"

    def strays(self) -> list[str]:
        """Names in the folder that are not the store's."""
        known = (LOG, LOCK, _NEW)
        return sorted(path.name for path in self._files() if path.name not in known and not _ASIDE.fullmatch(path.name))

    def size(self) -> int:
        """Bytes of all files of the log."""
        return sum(path.lstat().st_size for path in self._files() if path.name not in self.strays())

    def _files(self) -> Iterator[Path]:
        return self.folder.iterdir()
