"""What can go wrong with an embedded model. Each error says what happened, to which file, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk.errors import ModelError, ToolDefinitionError, UnknownModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def readable(size: int) -> str:
    """A number of bytes as people read it, in powers of ten."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"

    return f"{size} B"


class LocalModelError(ModelError):
    """Base of this plugin's own errors."""


class UnknownLocalModelError(LocalModelError, UnknownModelError):
    """No model of the catalog has that name, and no file does.

    Attributes:
        model_id: What was asked for.
    """

    def __init__(self, model_id: str, known: Sequence[str], guess: str | None) -> None:
        self.model_id = model_id
        meant = f" Did you mean {guess!r}?" if guess else ""
        super().__init__(
            f"ropewalk-local knows no model {model_id!r}.{meant} Use one of {', '.join(known)}, "
            "or the path of a .gguf file."
        )


# -- fetching ----------------------------------------------------------------------------------------------------


class NoSpaceError(LocalModelError):
    """The cache folder's disk has no room for the file."""

    def __init__(self, folder: Path, needed: int, free: int) -> None:
        super().__init__(
            f"{folder} has {readable(free)} free and the model needs {readable(needed)} more: free some space, "
            "or point ROPEWALK_CACHE at a folder on another disk."
        )


class CacheFolderError(LocalModelError):
    """The cache folder cannot be made, read or written."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"{folder} cannot be used for models ({reason}): make it writable, or point ROPEWALK_CACHE at another "
            "folder."
        )


class HashMismatchError(LocalModelError):
    """What a source delivered is not the file that the catalog pins; it was thrown away."""

    def __init__(self, what: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{what} has sha256 {actual}, the catalog pins {expected}: it was thrown away. Try again, and if it "
            "happens again the source is not to be trusted: name a file of your own by its path."
        )


class NoSourceError(LocalModelError):
    """No source of the file could be reached.

    Attributes:
        reasons: One line per source, with the reason why it failed.
    """

    retryable = True

    def __init__(self, name: str, reasons: Sequence[str], target: Path) -> None:
        self.reasons = tuple(reasons)
        lines = "".join(f"\n  - {reason}" for reason in reasons)
        super().__init__(
            f"No source delivers the model {name}:{lines}\nCheck the network and pip's index settings, set HF_ENDPOINT "
            f"to a mirror, or bring the file yourself and put it at {target} (its hash is checked) or name it by path."
        )


class DownloadInterruptedError(LocalModelError):
    """A download stopped before its end; what was checked so far is kept, and the next try goes on from there."""

    retryable = True

    def __init__(self, what: str, kept: int, total: int) -> None:
        super().__init__(
            f"The download of {what} stopped after {readable(kept)} of {readable(total)}, which are kept: "
            "run it again to go on."
        )


# -- loading -----------------------------------------------------------------------------------------------------


class NotGgufError(LocalModelError, ValueError):
    """The file is no GGUF model."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is not a GGUF file ({reason}): name a model file in llama.cpp's GGUF format.")


class TruncatedGgufError(LocalModelError, ValueError):
    """The file ends before what its header announces."""

    def __init__(self, path: Path, size: int, announced: int | None) -> None:
        of = f"of the {readable(announced)} that its header announces" if announced else "and ends inside its header"
        super().__init__(f"{path} is cut short: it has {readable(size)} {of}. Fetch it again.")


class NotEnoughMemoryError(LocalModelError):
    """Loading would need more memory than the machine has to give."""

    def __init__(self, path: Path, needed: int, available: int) -> None:
        super().__init__(
            f"{path.name} needs about {readable(needed)} of memory and {readable(available)} are available: "
            "use a smaller model (qwen2.5-coder-0.5b), a smaller n_ctx or parallel, or pass check_memory=False."
        )


class UnsupportedPlatformError(LocalModelError):
    """The runtime is not installed, or there is none for this platform."""

    def __init__(self, platform: str, reason: str) -> None:
        super().__init__(
            f"The runtime xllamacpp cannot be imported on {platform} ({reason}): pip install xllamacpp. If pip finds "
            'no wheel for this platform, see the table "Platforms" in the README of ropewalk-local, or use a model '
            "behind an API."
        )


class LoadError(LocalModelError):
    """The runtime refuses the file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"llama.cpp cannot load {path} ({reason}): the file may be damaged or of an architecture that the "
            "installed xllamacpp does not know (pip install -U xllamacpp)."
        )


# -- asking ------------------------------------------------------------------------------------------------------


class SchemaRefusedError(LocalModelError, ToolDefinitionError):
    """A JSON schema cannot be turned into a grammar.

    Attributes:
        owner: The tool whose schema it is, or a phrase for the output schema.
    """

    def __init__(self, owner: str, reason: str) -> None:
        self.owner = owner
        super().__init__(
            f"The JSON schema of {owner} cannot be turned into a grammar: {reason}. Simplify that part of the schema."
        )


class EngineClosedError(LocalModelError):
    """The process is ending, or the model was closed while a request ran."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"The engine of {path.name} is closed: make a new LocalModel.")
