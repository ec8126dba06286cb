"""A plugin that this project knows nothing of: installed with pip it takes part, uninstalled it does not."""

from __future__ import annotations

import json

PLUGIN = '''\
"""Speaks louder."""

from __future__ import annotations

from dataclasses import replace

from ropewalk import hookimpl


class LoudPlugin:
    """Asks the model in capital letters."""

    name = "loud"

    @hookimpl
    async def around_model_call(self, request, call_next):
        """Changes what is sent, for this attempt only."""
        louder = [{"text": block["text"].upper()} for block in request.messages[-1]["content"]]
        messages = (*request.messages[:-1], {"role": "user", "content": louder})
        return await call_next(replace(request, messages=messages))
'''
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-loud"
version = "1.0"
dependencies = ["ropewalk-core"]

[project.entry-points."ropewalk.plugins"]
loud = "acme_loud:LoudPlugin"
"""
RUN = """
import json
from ropewalk import Agent
from ropewalk.kits.hooks import describe_plugins

result = Agent(model="testing:echo")("hello")
print(json.dumps({"answer": str(result), "plugins": [plugin.name for plugin in describe_plugins()]}))
"""


def test_a_plugin_of_somebody_else_takes_part_as_long_as_it_is_installed(throwaway, tmp_path):
    folder = tmp_path / "loud"
    (folder / "acme_loud").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "acme_loud" / "__init__.py").write_text(PLUGIN)

    def run():
        return json.loads(throwaway.run("-c", RUN))

    without = {"answer": "hello\n", "plugins": ["testing"]}
    assert run() == without

    throwaway.install(folder)
    assert run() == {"answer": "HELLO\n", "plugins": ["loud", "testing"]}

    throwaway.uninstall("acme-loud")
    assert run() == without


def test_the_plugin_is_about_twenty_lines():
    assert len(PLUGIN.splitlines()) <= 21
