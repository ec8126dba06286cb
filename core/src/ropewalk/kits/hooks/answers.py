"""What an answer of a hook must be: checked where it is given, so that the error names plugin, hook and definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ropewalk.errors import PluginError
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.calls.outcomes import Stop
from ropewalk.kits.hooks.blueprint import Link
from ropewalk.kits.hooks.signatures import where


def _is_model(answer: Any) -> bool:
    return callable(getattr(answer, "stream", None)) and not isinstance(answer, type)


def _are_blocks(answer: Any) -> bool:
    return isinstance(answer, list | tuple) and all(isinstance(block, dict) for block in answer)


def _are_tools(answer: Any) -> bool:
    tools = answer if isinstance(answer, list | tuple) else [answer]
    return all(hasattr(tool, "tool_name") and callable(getattr(tool, "invoke", None)) for tool in tools)


def _are_edits(answer: Any) -> bool:
    return isinstance(answer, list | tuple) and all(isinstance(edit, HistoryEdit) for edit in answer)


def _is_delay(answer: Any) -> bool:
    number = isinstance(answer, int | float) and not isinstance(answer, bool)
    return number and math.isfinite(answer) and answer >= 0


_RULES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "provide_model": (_is_model, "a model, an object with a method stream(request)"),
    "provide_tool": (_are_tools, "a tool or a list of tools, with tool_name, tool_spec and invoke"),
    "provide_tools": (_are_tools, "a list of tools, with tool_name, tool_spec and invoke"),
    "provide_commands": (lambda answer: isinstance(answer, list | tuple), "a list, also for one or none"),
    "provide_method": (callable, "a function"),
    "decide_stop": (lambda answer: isinstance(answer, Stop), "Stop(stop_reason)"),
    "decide_continue": (_are_blocks, "a list of content blocks"),
    "decide_retry": (_is_delay, "seconds, 0 or more"),
    "manage_context": (_are_edits, "a list of HistoryEdits"),
}
"""Hook to the test of its answer, and what it must be. Other hooks' answers are looked at where they are used."""


def checked_answer(answer: Any, link: Link) -> Any:
    """The answer, if it is what the hook is specified to give.

    Raises:
        PluginError: It is something else.
    """
    rule = _RULES.get(link.hook)
    if rule is None or rule[0](answer):
        return answer

    raise PluginError(
        f"{link.hook} of plugin {link.plugin_name!r} returned {_shown(answer)} [{where(link.function)}]: "
        f"return {rule[1]}, or None"
    )


def _shown(answer: Any) -> str:
    try:
        return f"{answer!r:.60}"
    except Exception:  # noqa: BLE001 - a value whose __repr__ raises is still only a wrong answer
        return type(answer).__name__
