"""The hook `write_records`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Journal:
    """One JSON object per line."""

    name = "journal"

    def __init__(self, path):
        self.path = path

    @hookimpl
    async def write_records(self, records):
        with self.path.open("a") as file:
            file.writelines(json.dumps(record.to_dict()) + "\n" for record in records)


path = Path(tempfile.mkdtemp()) / "journal.jsonl"
agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Journal(path)], callback_handler=None)
agent("Hello?")
kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
assert (kinds[0], kinds[1], kinds[-1]) == ("snapshot_loaded", "run_started", "run_ended")
