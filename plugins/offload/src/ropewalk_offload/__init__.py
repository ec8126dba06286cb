"""Keeps large tool results out of the context: a preview and a reference stay, the rest can be looked up."""

from __future__ import annotations

from ropewalk.kits.context.folder_storage import FolderStorage
from ropewalk.kits.context.sandbox_storage import SandboxStorage
from ropewalk.kits.context.storage import ContextStorage, MemoryStorage, StorageError
from ropewalk_offload.offloader import ContextOffloader
from ropewalk_offload.plugin import OffloadPlugin

__all__ = [
    "ContextOffloader",
    "ContextStorage",
    "FolderStorage",
    "MemoryStorage",
    "OffloadPlugin",
    "SandboxStorage",
    "StorageError",
]
