"""A sandbox as storage: files in it, through its own `write_file` and `read_file`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.context.framing import SUFFIX, file_name, framed, key_in, unframed
from ropewalk.kits.context.storage import StorageError

FOLDER: Final = ".ropewalk/context"


def is_sandbox(value: object) -> bool:
    """Whether the value reads and writes files."""
    return all(callable(getattr(value, method, None)) for method in ("write_file", "read_file"))


@final
class SandboxStorage:
    """Keeps each item in a file of a sandbox; what code in the sandbox does to the files is noticed, not prevented.

    The sandbox's methods may be async; others run in a thread. `write_file(path, data)` makes the folders on the way,
    `read_file(path)` gives bytes or text and raises FileNotFoundError. Removing needs `remove_file(path)`, listing
    `list_files(path)`.

    Args:
        sandbox: The sandbox.
        folder: Where in it.
    """

    __slots__ = ("_folder", "_sandbox")

    durable: Final = True

    def __init__(self, sandbox: Any, folder: str = FOLDER) -> None:
        if not is_sandbox(sandbox):
            raise ValueError(f"{sandbox!r:.200} has no write_file and read_file: give a sandbox that has both")

        self._sandbox = sandbox
        self._folder = folder.rstrip("/")

    def __repr__(self) -> str:
        return f"SandboxStorage({self._sandbox!r}, {self._folder!r})"

    async def write(self, key: str, data: bytes) -> None:
        """See `ContextStorage`."""
        await self._call("write_file", f"{self._folder}/{file_name(key)}", framed(key, data))

    async def read(self, key: str) -> bytes | None:
        """See `ContextStorage`."""
        path = f"{self._folder}/{file_name(key)}"
        content = await self._content(path)
        return None if content is None else unframed(key, content, f"{path} in {self._sandbox!r:.80}")

    async def delete(self, key: str) -> bool:
        """See `ContextStorage`."""
        path = f"{self._folder}/{file_name(key)}"
        if await self._content(path) is None:
            return False

        await self._call("remove_file", path)
        return True

    async def list(self, prefix: str = "") -> Sequence[str]:
        """See `ContextStorage`."""
        try:
            entries = await self._call("list_files", self._folder)
        except FileNotFoundError:
            return []

        names = [str(getattr(entry, "name", entry)).rpartition("/")[2] for entry in entries]
        contents = [await self._content(f"{self._folder}/{name}") for name in names if name.endswith(SUFFIX)]
        keys = [key_in(content or b"") for content in contents]
        return sorted(key for key in keys if key is not None and key.startswith(prefix))

    async def _content(self, path: str) -> bytes | None:
        try:
            content = await self._call("read_file", path)
        except FileNotFoundError:
            return None

        return content.encode() if isinstance(content, str) else bytes(content)

    async def _call(self, method: str, *args: Any) -> Any:
        """Calls the sandbox; its FileNotFoundError passes, except when it writes."""
        body: Callable[..., Any] | None = getattr(self._sandbox, method, None)
        if body is None:
            raise StorageError(f"sandbox {self._sandbox!r:.80} has no method {method}: use one that has, or a folder")

        try:
            answer = body(*args) if inspect.iscoroutinefunction(body) else await in_thread(body, *args)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            if isinstance(error, FileNotFoundError) and method != "write_file":
                raise

            raise StorageError(
                f"{method} of {self._sandbox!r:.80} failed for {args[0]} ({type(error).__name__}: {error}): see to "
                "the sandbox, or use a folder"
            ) from error
