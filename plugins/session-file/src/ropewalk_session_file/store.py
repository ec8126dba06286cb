"""The store: one append-only file of JSON lines for each agent of a session."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions import (
    LogInfo,
    LogKey,
    SessionConflictError,
    SessionDamagedError,
    SessionException,
    StoredLog,
)
from ropewalk.kits.sessions.names import safe_name
from ropewalk_session_file.files import Explained, check_folder, opened, read_all
from ropewalk_session_file.held import Held
from ropewalk_session_file.lines import Scan, position_of, scan
from ropewalk_session_file.lock import take
from ropewalk_session_file.place import LOCK, LOG, Place
from ropewalk_session_file.writing import append, replace

logger = logging.getLogger("ropewalk.session-file")

StorageDir: TypeAlias = "str | os.PathLike[str] | None"
Durability: TypeAlias = Literal["process", "power"]
DEFAULT_FOLDER: Final = "~/.ropewalk/sessions"
_DELETED: Final = ".deleted-"


class FileLogStore:
    """Keeps logs in files, `SESSION/AGENT/log.jsonl` in a folder.

    Args:
        storage_dir: The folder, made when it is needed. Default: `.ropewalk/sessions` in the user's home.
        durability: What a commit survives: `"process"`, the end of the process, or `"power"`, also a power cut; the
            latter waits for the disk at each commit.

    Raises:
        ValueError: There is no such durability.
    """

    def __init__(
        self, storage_dir: str | os.PathLike[str] | None = None, *, durability: Durability = "process"
    ) -> None:
        if durability not in get_args(Durability):
            raise ValueError(f"durability={durability!r}: give 'process' or 'power'")

        self.root = Path(os.path.abspath(Path(storage_dir or DEFAULT_FOLDER).expanduser()))  # noqa: PTH100 - links stay
        self.durability = durability
        self._held: dict[LogKey, Held] = {}
        self._place = lru_cache(maxsize=64)(partial(Place, self.root))

    def __repr__(self) -> str:
        return f"FileLogStore({str(self.root)!r}, durability={self.durability!r})"

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, key: LogKey) -> StoredLog | None:
        """As the protocol says. Nothing is changed: what cannot be read is set aside before the next write.

        Raises:
            SessionDamagedError: The first line cannot be read.
            SessionException: The file cannot be opened, or is of a newer version.
        """
        place = self._place(key)
        with Explained("read", place.log):
            try:
                place.check()
                descriptor = opened(place.log, os.O_RDONLY)
            except FileNotFoundError:
                return None

            try:
                data = read_all(descriptor)
            finally:
                os.close(descriptor)

            strays = place.strays()

        found = scan(data, 0, place.log)
        _check_head(found, data, place)
        report = [f"{place.folder} holds {name!r}, which is not of this session and is ignored" for name in strays]
        if found.damaged or not data:
            report.insert(0, _told(found, place))

        position = position_of(found.generation, found.end)
        return StoredLog([entry.record for entry in found.entries], position, tuple(report))

    def logs(self, session_id: str | None = None) -> list[LogInfo]:
        """As the protocol says. `size` counts all files of a log, also what was set aside.

        Raises:
            SessionException: The folder cannot be read.
        """
        folders = [self.root / safe_name(session_id)] if session_id is not None else _folders(self.root)
        found = [self._info(folder) for session in folders for folder in _folders(session)]
        return sorted(
            (info for info in found if info is not None), key=lambda info: (info.key.session_id, info.key.agent_id)
        )

    def _info(self, folder: Path) -> LogInfo | None:
        path = folder / LOG
        try:
            descriptor = opened(path, os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as file:
                first = file.readline()
                changed = os.fstat(descriptor).st_mtime

            said = scan(first, 0, path).head or {}
            key = LogKey(said["session"], said["agent"])
            place = Place(self.root, key)
            if place.folder == folder:
                return LogInfo(key, place.size(), changed)

            logger.warning("%s is the log of session %r and stands in the wrong folder: ignored", path, key.session_id)
        except FileNotFoundError:
            pass
        except (OSError, KeyError, SessionException) as error:
            logger.warning("%s is ignored: its first line cannot be read (%s)", path, error)

        return None

    # -- writing ---------------------------------------------------------------------------------------------------

    async def lease(self, key: LogKey) -> Held:
        """As the protocol says; the lock is freed by the system when the process ends.

        Raises:
            SessionConflictError: Somebody has it.
            SessionException: It cannot be taken.
        """
        place = self._place(key)
        for _ in range(2):  # the folder may be deleted between the two steps
            with Explained("locked", place.lock):
                place.make()
                try:
                    lock = take(place.lock, lambda: place.named)
                except FileNotFoundError:
                    continue

                held = self._held[key] = Held(place, lock, self._forget)
                return held

        raise SessionConflictError(f"{place.named} is being deleted: wait until that is done")

    async def append(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """As the protocol says.

        Raises:
            SessionConflictError: The log does not end there, or is gone.
            SessionException: It could not be written.
        """
        if not records:
            return position

        held = self._held.get(key)
        if held is None:
            held = await self.lease(key)
            try:
                return await self.append(key, records, position)
            finally:
                held.release()

        if self.durability == "power":
            return await in_thread(append, held, records, position, sync=True)

        return append(held, records, position, sync=False)  # some microseconds: a thread would cost more

    async def replace(self, key: LogKey, records: Sequence[Record], position: int) -> int:
        """As the protocol says; always synced, in a thread. What was erased in the log is erased in set-aside files.

        Raises:
            SessionConflictError: The log does not end there, or is gone.
            SessionException: It could not be written.
        """
        held = self._held.get(key)
        if held is None:
            held = await self.lease(key)
            try:
                return await self.replace(key, records, position)
            finally:
                held.release()

        return await in_thread(replace, held, records, position)

    def delete(self, session_id: str) -> bool:
        """As the protocol says.

        Raises:
            SessionConflictError: An agent is running on it.
            SessionException: It cannot be deleted.
        """
        session = self.root / safe_name(session_id)
        with Explained("deleted", session), contextlib.ExitStack() as locks:
            try:
                check_folder(session)
            except FileNotFoundError:
                return False

            folders = _folders(session)
            there = any((folder / LOG).exists() for folder in folders)
            for folder in folders:
                locks.callback(take(folder / LOCK, lambda: f"session {session_id!r}").release)

            session.rename(self.root / f"{_DELETED}{secrets.token_hex(8)}")
            for leftover in self.root.glob(f"{_DELETED}*"):  # also of processes that ended here
                _remove(leftover)

        return there

    def _forget(self, held: Held) -> None:
        if self._held.get(held.place.key) is held:
            del self._held[held.place.key]


def _check_head(found: Scan, data: bytes, place: Place) -> None:
    if found.head is None:
        if b"\n" in data:
            raise SessionDamagedError(
                f"{place.named} cannot be read: its first line is damaged. Put back a copy of the file, or move it "
                "away to begin anew"
            )
    elif (found.head.get("session"), found.head.get("agent")) != (place.key.session_id, place.key.agent_id):
        raise SessionException(
            f"{place.log} is the log of session {found.head.get('session')!r}, agent {found.head.get('agent')!r}, and "
            f"not of {place.key.session_id!r}, {place.key.agent_id!r}: move it back to where it was"
        )


def _told(found: Scan, place: Place) -> str:
    if found.size == 0:
        return f"{place.log} is empty: the conversation begins anew"

    return (
        f"{place.log}: {len(found.entries)} records, {found.end} bytes, are whole; the {found.size - found.end} bytes "
        "after them were changed, or their write was cut off. They are set aside before anything is written"
    )


def _remove(folder: Path) -> None:
    """Removes a folder that others may be removing as well."""
    while folder.exists():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder, without links and hidden ones."""
    with Explained("read", folder):
        try:
            check_folder(folder)
            inside = sorted(folder.iterdir())
        except FileNotFoundError:
            return []

    return [path for path in inside if not path.name.startswith(".") and path.is_dir() and not path.is_symlink()]
