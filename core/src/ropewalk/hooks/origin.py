"""Which distribution a plugin came from, for error messages. Only asked when something failed."""

from __future__ import annotations

import sys
from functools import lru_cache


def origin_of(cls: type) -> str:
    """The distribution and version that a class came with, or the module when it came with none."""
    return _origin(cls.__module__)


@lru_cache(maxsize=256)
def _origin(module: str) -> str:
    from importlib import metadata

    package = module.partition(".")[0]
    names = () if package == "__main__" or package in sys.stdlib_module_names else _distributions().get(package, ())
    for name in names:
        return f"{name} {metadata.version(name)}"

    return f"module {module}"


@lru_cache(maxsize=1)
def _distributions() -> dict[str, tuple[str, ...]]:
    from importlib import metadata

    return {package: tuple(names) for package, names in metadata.packages_distributions().items()}
