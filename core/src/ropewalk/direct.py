"""Direct calls: `agent.tool.name(...)`, through the same hooks and gates as the model's calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from ropewalk.errors import ConcurrencyException
from ropewalk.kits.aio.blocking import run_blocking
from ropewalk.kits.calls.invocation import CallOptions
from ropewalk.kits.events import MessageAdded
from ropewalk.kits.json_values import strict_json
from ropewalk.kits.messages.history import History
from ropewalk.kits.messages.rules import OUTCOME_UNKNOWN
from ropewalk.kits.suspension import Suspend
from ropewalk.loop.cycles import compose
from ropewalk.loop.invocation import let_go
from ropewalk.loop.log import begin_log, end_log
from ropewalk.loop.tools_step import run_alone
from ropewalk.run import Run, under_way
from ropewalk.tools import Tool, ToolCall
from ropewalk.types import ToolResult, ToolUse

if TYPE_CHECKING:
    from ropewalk.agent import Agent


class ToolCaller:
    """The tools of an agent as methods; `-` in a name is written `_`."""

    __slots__ = ("_agent",)

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Callable[..., ToolResult]:
        agent = self._agent
        tool = agent.tool_registry.find(name)
        if tool is None:
            known = ", ".join(agent.tool_names) or "none"
            raise AttributeError(f"agent {agent.name!r} has no tool {name!r}: its tools are {known}")

        def call(
            *, record_direct_tool_call: bool | None = None, user_message_override: str | None = None, **given: Any
        ) -> ToolResult:
            recorded = agent.record_direct_tool_call if record_direct_tool_call is None else record_direct_tool_call
            return run_blocking(lambda: _call(agent, tool, given, user_message_override, recorded), agent.cancel)

        return call


async def _call(agent: Agent, tool: Tool, given: dict[str, Any], override: str | None, recorded: bool) -> ToolResult:
    """Runs the tool; records four messages, or none.

    Raises:
        ConcurrencyException: The call is to be recorded and the agent is busy.
        RuntimeError: The agent is paused, or the tool asks its caller something.
    """
    agent.check_open()
    if agent.suspension is not None:
        raise RuntimeError(
            f"cannot directly call tool during interrupt: agent {agent.name!r} is paused with open tool calls; "
            "resume it first, or start anew with a prompt"
        )

    history = agent.history if recorded else History()
    run = Run(agent, CallOptions(None, {}), agent.hooks, history, None)
    run.direct = True
    if not recorded:
        run.journal = None  # no part of the agent's log either

    if recorded and not agent.claim(run):
        raise ConcurrencyException(
            f"agent {agent.name!r} is busy, and a direct call of {tool.tool_name!r} would be recorded in the middle of "
            "its run: wait, or pass record_direct_tool_call=False"
        )

    token = under_way.set(ref(run))
    try:
        await begin_log(run)
        history.close_open_uses(OUTCOME_UNKNOWN)
        compose(run)
        use: ToolUse = {"toolUseId": history.free_id(None, set()), "name": tool.tool_name, "input": strict_json(given)}
        text = (
            override or f"agent.tool.{tool.tool_name} direct tool call.\nInput parameters: {json.dumps(use['input'])}\n"
        )
        try:
            result = await run_alone(run, ToolCall(run, {**use, "input": given}, tool))
        except Suspend as suspend:
            raise RuntimeError(
                f"tool {tool.tool_name!r} asks {suspend!s}, which nobody can answer in a direct call: "
                "pass response= where it asks, or let the model call it"
            ) from suspend

        history.add_user([{"text": text}])
        history.add_assistant({"role": "assistant", "content": [{"toolUse": use}]})
        history.add_user([{"toolResult": result}])
        history.add_assistant({"role": "assistant", "content": [{"text": f"agent.tool.{tool.tool_name} was called."}]})
        await run.commit()
        for message in history.messages[-4:] if run.followed else ():
            await run.emit(MessageAdded(message))

        return result
    finally:
        under_way.reset(token)
        run.cancellation.end()
        let_go(run)
        if recorded:
            agent.release(run)

        await end_log(run)  # last, for it may raise
