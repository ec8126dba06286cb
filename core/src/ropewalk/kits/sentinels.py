"""A value that means "not given", where None means something."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Default(Enum):
    """The type of `DEFAULT`, for signatures."""

    DEFAULT = "default"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default.DEFAULT
