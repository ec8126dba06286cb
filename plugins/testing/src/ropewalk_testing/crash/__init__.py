"""The crash kit: kills a run at every record it writes, goes on in another process, and compares.

```python
from pathlib import Path

from ropewalk_testing import crash


def open_store(folder: Path) -> MyLogStore:
    return MyLogStore(folder)


def test_a_run_survives_every_crash():
    crash.run(open_store).check()
```
"""

from __future__ import annotations

from ropewalk_testing.crash.effects import EffectJournal, Happened
from ropewalk_testing.crash.killing import KillingStore, KillPoint, Step, kill_points
from ropewalk_testing.crash.report import Finding, Report
from ropewalk_testing.crash.running import REPORTS, run
from ropewalk_testing.crash.scenario import Scenario
from ropewalk_testing.crash.tools import JournalTool

__all__ = [
    "REPORTS",
    "EffectJournal",
    "Finding",
    "Happened",
    "JournalTool",
    "KillPoint",
    "KillingStore",
    "Report",
    "Scenario",
    "Step",
    "kill_points",
    "run",
]
