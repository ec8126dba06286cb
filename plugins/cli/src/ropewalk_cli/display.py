"""What a person sees of a run: the answer on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import click

from ropewalk.kits.json_values import strict_json
from ropewalk.kits.terminal import first_line, harmless
from ropewalk_cli.exits import COMPLETE
from ropewalk_cli.output import text_of_result, write
from ropewalk_cli.saved import PAUSES

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult


class Display(Protocol):
    """Shows a run."""

    def event(self, event: dict[str, Any]) -> None:
        """Shows one event of `stream_async`."""

    def ended(self, result: AgentResult, *, kept: bool = False) -> None:
        """Shows how the run ended; a run that waits and is kept is told of elsewhere."""

    def failed(self, error: Exception) -> None:
        """Shows that the run ended in an error, which is reported elsewhere as well."""


class ToolLedger:
    """The tool calls of a run, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def asked(self, tool_use: dict[str, Any]) -> int:
        """Notes a call and gives its number, from 1."""
        self.calls.append(
            {"id": tool_use["toolUseId"], "name": tool_use["name"], "input": tool_use["input"], "status": "pending"}
        )
        self._numbers[tool_use["toolUseId"]] = len(self.calls)
        return len(self.calls)

    def answered(self, result: dict[str, Any]) -> int | None:
        """Notes a result and gives the number of its call; None when the call is none of this run."""
        number = self._numbers.get(result["toolUseId"])
        if number is not None:
            self.calls[number - 1] |= {"status": result["status"], "result": text_of_result(result)}

        return number


class TextDisplay:
    """Answer to standard output as it comes; tools, waits and restarts to standard error."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._tools = ToolLedger()
        self._verbose = verbose
        self._most = {"most": None} if verbose else {}
        self._line_open = False
        self._thinking = False

    def event(self, event: dict[str, Any]) -> None:
        """Shows one event of `stream_async`."""
        for key, show in self._SHOWN.items():
            if key in event:
                show(self, event[key])
                return

    def ended(self, result: AgentResult, *, kept: bool = False) -> None:
        """Ends the last line, and says so when the answer is not complete."""
        self._end_line()
        if result.stop_reason in PAUSES:
            if not kept:
                _note(
                    f"stopped early: {result.stop_reason}; --snapshot FILE or --session ID keeps the run, to go on with"
                )
        elif result.stop_reason not in COMPLETE and result.stop_reason != "cancelled":
            _note(f"stopped early: {result.stop_reason}")

    def failed(self, error: Exception) -> None:  # noqa: ARG002 - reported by the caller
        """Ends the last line."""
        self._end_line()

    def _text(self, text: str) -> None:
        self._end_thought()
        if text:
            write(text)
            self._line_open = not text.endswith("\n")

    def _thought(self, text: str) -> None:
        if self._verbose:
            self._thinking = True
            click.secho(harmless(text), dim=True, err=True, nl=False)

    def _tools_starting(self, tool_uses: list[dict[str, Any]]) -> None:
        self._end_line()
        for use in tool_uses:
            arguments = first_line(json.dumps(strict_json(use["input"]), ensure_ascii=False), **self._most)
            _note(f"Tool #{self._tools.asked(use)}: {first_line(use['name'])} {arguments}")

    def _tool_stream(self, streamed: dict[str, Any]) -> None:
        if self._verbose:
            self._end_line()
            _note(f"{streamed['tool_use']['name']}: {first_line(str(streamed['data']))}")

    def _message(self, message: dict[str, Any]) -> None:
        self._end_line()
        for block in message["content"]:
            if "toolResult" in block:
                result = block["toolResult"]
                number = self._tools.answered(result)
                _note(f"Tool #{number}: {result['status']}: {first_line(text_of_result(result), **self._most)}")

    def _discarded(self, discarded: dict[str, Any]) -> None:
        self._end_line()
        _note(f"the answer starts again ({first_line(discarded['reason'])})")

    def _end_line(self) -> None:
        self._end_thought()
        if self._line_open:
            write("\n")
            self._line_open = False

    def _end_thought(self) -> None:
        if self._thinking:
            click.echo(err=True)
            self._thinking = False

    _SHOWN: dict[str, Callable[..., None]] = {  # noqa: RUF012 - never written to
        "data": _text,
        "reasoningText": _thought,
        "tools_starting": _tools_starting,
        "tool_stream_event": _tool_stream,
        "message": _message,
        "attempt_discarded": _discarded,
    }


class JsonDisplay:
    """One strict JSON object per line on standard output; the last has the key `result`, or `error`."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._tools = ToolLedger()
        self._verbose = verbose

    def event(self, event: dict[str, Any]) -> None:
        """Writes one event of `stream_async`; the provider's own events only when asked for."""
        if "result" in event or ("event" in event and not self._verbose):
            return

        for use in event.get("tools_starting", ()):
            self._tools.asked(use)

        for block in event.get("message", {}).get("content", ()):
            if "toolResult" in block:
                self._tools.answered(block["toolResult"])

        _line(event)

    def ended(self, result: AgentResult, *, kept: bool = False) -> None:  # noqa: ARG002 - the result says it
        """Writes the result."""
        told: dict[str, Any] = {
            "stop_reason": result.stop_reason,
            "message": result.message,
            "usage": result.metrics.accumulated_usage,
            "tools": self._tools.calls,
        }
        if result.stop_reason in PAUSES:
            told["interrupts"] = [each.to_dict() for each in result.interrupts or ()]
            told["checkpoint"] = result.to_dict()["checkpoint"]

        _line({"result": told})

    def failed(self, error: Exception) -> None:
        """Writes the error."""
        _line({"error": {"type": type(error).__name__, "message": str(error)}})


def _line(value: dict[str, Any]) -> None:
    write(json.dumps(strict_json(value), allow_nan=False) + "\n")


def _note(text: str) -> None:
    click.secho(text, dim=True, err=True)
