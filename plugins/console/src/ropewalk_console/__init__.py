"""Shows what an agent does: prints it as it comes, or hands it to a callback."""

from __future__ import annotations

from ropewalk_console.handlers import CompositeCallbackHandler, PrintingCallbackHandler, null_callback_handler
from ropewalk_console.plugin import CallbackPlugin, ConsolePlugin

__all__ = [
    "CallbackPlugin",
    "CompositeCallbackHandler",
    "ConsolePlugin",
    "PrintingCallbackHandler",
    "null_callback_handler",
]
