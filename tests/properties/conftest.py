"""Makes this folder's modules importable: in importlib mode a test folder is on no path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("interplay_caller")  # its asserts say what they compared
