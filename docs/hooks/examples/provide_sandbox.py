"""The hook `provide_sandbox`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ropewalk import Agent, hookimpl
from ropewalk_testing import ScriptedModel


class Folder:
    """A place for files; not isolated from anything."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp())


class Folders:
    name = "folders"

    @hookimpl
    def provide_sandbox(self, spec):
        return Folder() if spec in (None, "folder") else None


agent = Agent(model=ScriptedModel(["Hello."]), plugins=[Folders()], callback_handler=None)
assert agent.sandbox.path.is_dir()  # made now, at the first use
assert agent.sandbox is agent.sandbox
