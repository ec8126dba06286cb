"""`ropewalk run`: one prompt, one answer."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ropewalk import hookimpl
from ropewalk.errors import MaxTokensReachedException
from ropewalk.kits.hooks.loading import find
from ropewalk.kits.suspension import ResumeTypeError
from ropewalk_cli.approving import approve_option, approving
from ropewalk_cli.display import Display, JsonDisplay, TextDisplay
from ropewalk_cli.exits import Exit, exit_of, report
from ropewalk_cli.interrupts import ctrl_c_calls
from ropewalk_cli.loading import load_agent, not_blank, not_blank_path, sort_tools
from ropewalk_cli.main import debug_option
from ropewalk_cli.saved import AgentOptions, check_place
from ropewalk_cli.sessions import attached, resume_command, run_in_session, session_of, session_options

if TYPE_CHECKING:
    from ropewalk.kits.result import AgentResult
    from ropewalk.kits.sessions.manager import SessionManager

DEFAULT_MODEL = "local:"
_MODEL_VARIABLE = "ROPEWALK_MODEL"
_AGENT_OPTIONS = (
    click.option(
        "--model",
        "-m",
        callback=not_blank,
        help="Model, as provider:id. Default: $ROPEWALK_MODEL, else the embedded model.",
    ),
    click.option(
        "--agent",
        "agent_spec",
        metavar="MODULE:NAME",
        callback=not_blank,
        help="An agent of yours, or a function that makes one.",
    ),
    click.option(
        "--tools",
        "-t",
        multiple=True,
        metavar="TOOLS",
        callback=not_blank,
        help="A file.py, a module:function or a plugin. Can be repeated.",
    ),
    click.option(
        "--plugin",
        "-p",
        "plugins",
        multiple=True,
        metavar="NAME",
        callback=not_blank,
        help="A plugin to use. -NAME leaves one out.",
    ),
    click.option("--system", "-s", metavar="TEXT", help="The system prompt."),
)


def agent_options(command: Any) -> Any:
    """Adds the options that make an agent."""
    for option in reversed(_AGENT_OPTIONS):
        command = option(command)

    return command


@click.command()
@click.argument("prompt", required=False)
@agent_options
@approve_option
@click.option("--checkpointing", is_flag=True, help="Pause after each answer with tool calls and after the tools.")
@click.option(
    "--snapshot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=not_blank_path,
    help="Where the run is kept when it pauses; `ropewalk resume FILE` goes on with it.",
)
@session_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line; the last has the result.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Show thinking, whole arguments and results; all events with --json."
)
@debug_option
@click.pass_context
def run(
    context: click.Context,
    prompt: str | None,
    model: str | None,
    agent_spec: str | None,
    tools: tuple[str, ...],
    plugins: tuple[str, ...],
    system: str | None,
    approve: frozenset[str],
    checkpointing: bool,
    snapshot: Path | None,
    session: str | None,
    store: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Asks an agent and prints its answer as it comes.

    PROMPT is read from standard input when it is "-", or left out and something is piped in. The answer goes to
    standard output, tool calls to standard error.

    Exit codes: 0 done, 1 error, 2 wrong usage, 3 stopped early (a limit, a filter), 4 paused, 130 cancelled.
    """
    if snapshot is not None and session is not None:
        raise click.UsageError("--session keeps a run that pauses: leave out --snapshot")

    if checkpointing and snapshot is None and session is None:
        raise click.UsageError(
            "--checkpointing pauses the run: give --snapshot FILE too, where it is kept, or --session ID"
        )

    asked = read_prompt(prompt)
    options = AgentOptions(model, agent_spec, tools, plugins, system, tuple(sorted(approve)), checkpointing)
    display: Display = JsonDisplay(verbose=verbose) if as_json else TextDisplay(verbose=verbose)
    try:
        if snapshot is not None:
            check_place(snapshot)

        with session_of(session, store) as manager:
            again = resume_command(session or "", options, store)
            result = _run(options, asked, display, snapshot, manager, again)
    except (click.ClickException, BrokenPipeError):
        raise
    except ResumeTypeError as error:
        display.failed(error)
        raise click.UsageError(
            f"session {session!r} waits for answers and takes no prompt: "
            f"`{resume_command(session or '', options, store)}` asks for them, or takes --answer ID=JSON"
        ) from error
    except MaxTokensReachedException as error:
        display.failed(error)
        report(error)
        context.exit(Exit.STOPPED_EARLY)
    except Exception as error:
        display.failed(error)
        raise

    context.exit(exit_of(result.stop_reason, kept=snapshot is not None or session is not None))


def _run(
    options: AgentOptions,
    prompt: str,
    display: Display,
    snapshot: Path | None,
    manager: SessionManager | None,
    again: str,
) -> AgentResult:
    if manager is not None:
        return run_in_session(converse, agent_of(options, manager), prompt, display, manager, again)

    if snapshot is None:
        return asyncio.run(converse(agent_of(options), prompt, display))

    from ropewalk_cli.resuming import run_saved

    options = settled(options)  # the environment may be another one later
    return run_saved(agent_of(options), prompt, display, snapshot, options)


def agent_of(options: AgentOptions, manager: SessionManager | None = None) -> Any:
    """The agent that the options describe, as it runs here, with its conversation in a session if there is a manager.

    Raises:
        click.UsageError: The options contradict each other.
    """
    agent = make_agent(options.model, options.agent, options.tools, options.plugins, options.system, manager)
    if options.checkpointing and not agent.hooks.plan.emit_checkpoint:
        agent.add_plugin("checkpoint")

    return approving(agent, frozenset(options.approve))


def settled(options: AgentOptions) -> AgentOptions:
    """The options with the model that is meant when none is given."""
    if options.agent is not None:
        return options

    return replace(options, model=model_string(options.model or os.environ.get(_MODEL_VARIABLE) or DEFAULT_MODEL))


def read_prompt(given: str | None) -> str:
    """The prompt from the command line or from a pipe.

    Raises:
        click.UsageError: There is none.
    """
    text = given
    if sys.stdin is None or sys.stdin.closed:
        text = None if given == "-" else given
    elif given == "-" or (given is None and not sys.stdin.isatty()):
        text = sys.stdin.buffer.read().decode(sys.stdin.encoding or "utf-8", "replace")
    if text is None or not text.strip():
        raise click.UsageError('there is no prompt: give one, as in ropewalk run "What is a ropewalk?", or pipe one in')

    return text


def make_agent(
    model: str | None,
    agent_spec: str | None,
    tools: tuple[str, ...],
    plugins: tuple[str, ...],
    system: str | None,
    manager: SessionManager | None = None,
) -> Any:
    """The agent that the options describe.

    Raises:
        click.UsageError: The options contradict each other.
    """
    if agent_spec is not None:
        extra = [name for name, value in zip(EXCLUDED, (model, tools, plugins, system), strict=True) if value]
        if extra:
            raise click.UsageError(f"--agent names an agent that is complete: leave out {', '.join(extra)}")

        return attached(silenced(load_agent(agent_spec)), manager)

    from ropewalk import Agent

    sources = sort_tools(tools)
    for name in sources.plugins:
        find(name, f"--tools {name} (neither a file.py nor a module:function)")

    for name in plugins:
        if not name.startswith("-"):
            find(name, f"--plugin {name}")

    if model is None and not os.environ.get(_MODEL_VARIABLE):
        model = DEFAULT_MODEL

    return Agent(
        model=None if model is None else model_string(model),  # None: the agent reads the variable
        tools=list(sources.tools),
        plugins=[*plugins, *sources.plugins] or None,
        system_prompt=system,
        callback_handler=None,
        session_manager=manager,
    )


class SilentConsole:
    """Takes the place of the console that is active unasked: this program shows the run itself."""

    name = "console"

    @hookimpl
    def on_agent_ready(self) -> None:
        """Nothing; a plugin has at least one hook."""


def silenced(agent: Any) -> Any:
    """The agent without its default console; a callback handler of its own stays."""
    own = agent.hooks.plugins[: agent.hooks.own]
    if not any(plugin.name == "console" for plugin in own):
        agent.add_plugin(SilentConsole())

    return agent


def model_string(given: str) -> str:
    """The model string; a provider's bare name stands for its default model."""
    from ropewalk.kits.hooks.activation import owner_of
    from ropewalk.kits.hooks.parameters import PARAMETERS

    provider = f"model.{given}"
    return f"{given}:" if provider in PARAMETERS or owner_of(provider) else given


EXCLUDED = ("--model", "--tools", "--plugin", "--system")


async def converse(agent: Any, prompt: Any, display: Display, *, kept: bool = False) -> AgentResult:
    """Runs the agent once and shows what happens.

    Args:
        agent: The agent.
        prompt: What it is called with.
        display: Shows it.
        kept: Whether a run that pauses is kept, and the caller says so.
    """
    try:
        result = await turn(agent, prompt, display, kept=kept)
    except Exception as error:
        try:
            await agent.aclose()
        except Exception as closing:  # noqa: BLE001 - what ended the run is what has to be told
            error.add_note(f"and then {type(closing).__name__}: {closing}")

        raise

    await agent.aclose()
    return result


async def turn(agent: Any, prompt: Any, display: Display, *, kept: bool = False) -> AgentResult:
    """As `converse`, and leaves the agent open."""
    loop = asyncio.get_running_loop()
    result: AgentResult | None = None
    with ctrl_c_calls(lambda: loop.call_soon_threadsafe(agent.cancel)):
        async with aclosing(agent.stream_async(prompt)) as events:
            async for event in events:
                display.event(event)
                result = event.get("result", result)

        if result is None:
            raise RuntimeError("the agent's stream ended without a result")

        display.ended(result, kept=kept)

    return result
