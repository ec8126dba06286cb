"""The embedded model of Ropewalk: GGUF files run in this process, without key or network."""

from __future__ import annotations

from ropewalk_local.catalog import CATALOG, DEFAULT_MODEL, ModelFile
from ropewalk_local.engine import release_engines
from ropewalk_local.errors import LocalModelError
from ropewalk_local.model import LocalModel
from ropewalk_local.plugin import LocalPlugin

__all__ = ["CATALOG", "DEFAULT_MODEL", "LocalModel", "LocalModelError", "LocalPlugin", "ModelFile", "release_engines"]
