"""The hook `adopt`."""

from __future__ import annotations

from ropewalk import hookimpl
from ropewalk.kits.hooks import Hooks


class KeepLast:
    """The plugin behind the value: drops all but the last messages."""

    name = "keep-last"

    def __init__(self, count):
        self.count = count

    @hookimpl
    async def manage_context(self, request, reason): ...


class Windows:
    """Owns the parameter, by an entry point of the group ropewalk.parameters: conversation_manager = ..."""

    name = "windows"

    @hookimpl
    def adopt(self, parameter, value):
        if parameter != "conversation_manager" or not isinstance(value, int):
            return None  # not understood: the user gets an error

        return KeepLast(value)


# What the kernel does for Agent(conversation_manager=20):
adopted = Hooks.of([Windows()]).adopt("conversation_manager", 20, None)
assert (adopted.name, adopted.count) == ("keep-last", 20)
