"""The benchmark's own modules are found beside its scripts, as when it is run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
