"""The `ropewalk` program: runs agents from the shell and shows which plugins are at work."""

from __future__ import annotations

from ropewalk_cli.plugin import CliPlugin

__all__ = ["CliPlugin"]
