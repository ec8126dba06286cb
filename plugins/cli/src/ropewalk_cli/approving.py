"""`--approve tool,...`: the tools that ask on the terminal before they run."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, final

import click

from ropewalk import Denied, Invocation, Refuse, ToolCall, hookimpl
from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.json_values import strict_json
from ropewalk.kits.terminal import harmless

if TYPE_CHECKING:
    from ropewalk import AgentResult
    from ropewalk.agent import Agent
    from ropewalk.kits.calls.verdicts import Moment

EVERY: Final = "*"
_YES: Final = frozenset({"y", "yes"})
_ATTEMPTS: Final = 5
_one_at_a_time: Final = threading.Lock()


def _split(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise click.BadParameter('name tools, as in --approve delete,send, or "*" for all', context, parameter)

    return frozenset(names)


approve_option: Final = click.option(
    "--approve",
    multiple=True,
    metavar="TOOLS",
    callback=_split,
    help='Ask before these tools run: names with commas between, or "*" for all. Can be repeated.',
)
"""Adds `--approve` to a command, which gets a set of names as `approve`."""


def approving(agent: Any, names: frozenset[str]) -> Any:
    """The agent, which asks before it runs the tools of these names."""
    if names:
        agent.add_plugin(ApprovalPlugin(names))

    return agent


@final
class ApprovalPlugin:
    """Asks on the terminal before tools run."""

    name = "approve"
    order = 950  # what is asked about is what runs: others have changed it already

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    @hookimpl
    async def around_invocation(
        self, invocation: Invocation, call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]], agent: Agent
    ) -> AgentResult | Denied:
        """Refuses to begin when a tool of a name is missing: it would look guarded, and be called otherwise.

        Raises:
            click.BadParameter: The agent has no such tool.
        """
        known = agent.tool_names
        unknown = sorted(self._names - {EVERY, *known})
        if unknown:
            raise click.BadParameter(
                f"the agent has no tool {unknown[0]!r}: its tools are {', '.join(known) or 'none'}",
                param_hint="--approve",
            )

        return await call_next(invocation)

    @hookimpl
    async def intervene(self, moment: Moment, subject: Any) -> Refuse | None:
        """Refuses what is not approved."""
        if moment != "before_tool_call" or not self._guards(subject):
            return None

        prompt = question(subject)
        if await in_thread(is_approved, prompt):
            return None

        return Refuse("not approved", f"CONFIRMATION_FAILED: {prompt}")

    def _guards(self, call: ToolCall) -> bool:
        """A tool is known by the name that the model uses and by its own: a hook may have put one behind another."""
        names = {call.tool_use["name"], call.tool.tool_name if call.tool is not None else ""}
        return EVERY in self._names or not names.isdisjoint(self._names)


def question(call: ToolCall) -> str:
    """What is asked: the tool and its whole input, for nothing that runs may be hidden."""
    asked = call.tool_use["name"]
    name = asked if call.tool is None else call.tool.tool_name
    arguments = json.dumps(strict_json(call.tool_use["input"]), ensure_ascii=False)
    return f"Run the tool {name}{'' if name == asked else f' in the place of {asked}'} with {arguments}?"


def is_approved(prompt: str) -> bool:
    """Asks for a yes or a no; the end of the input, or no clear answer, is a no. One question at a time."""
    with _one_at_a_time:
        for _ in range(_ATTEMPTS):
            click.echo(f"{harmless(prompt)} [y/n] ", err=True, nl=False)
            line = sys.stdin.readline() if sys.stdin is not None and not sys.stdin.closed else ""
            answer = line.strip().casefold()
            if not line:
                click.echo("\nThe input is at its end: not approved", err=True)
                return False

            if answer in _YES:
                return True

            if answer in ("n", "no"):
                return False

    return False
