"""`ropewalk plugins explain`: who is called by a hook, in which order, and why in this one."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import click

from ropewalk.kits.hooks import assemble, order_of
from ropewalk.kits.hooks.origin import origin_of
from ropewalk.kits.hooks.signatures import HOOKS, SPEC_MARK, mark_of, where
from ropewalk.kits.terminal import table
from ropewalk.specs import SPECS
from ropewalk_cli.main import debug_option

if TYPE_CHECKING:
    from ropewalk.kits.hooks import Hooks, Link

RULE = """\
Ordered by tier (policy, normal, observer); then by order, lower first; then tryfirst and trylast; then by position: an
agent's own plugins= come before those that are active unasked, which come by name."""

GATES = """\
At the gates this order holds after something happened; before it, normal plugins are asked first and policies last."""


@click.command()
@click.argument("hook")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@debug_option
def explain(hook: str, as_json: bool) -> None:
    """Shows who implements HOOK, in calling order, and why in this one.

    As an agent without plugins= of its own would have it in this environment.
    """
    hooks = assemble(None, {}, None)
    order_of(hook, hooks)  # refuses a hook that there is not
    rows = rows_of(hook, hooks)
    if as_json:
        click.echo(json.dumps({"hook": hook, "kind": kind_of(hook), "order": rows}, indent=2))
        return

    click.echo(f"{hook}: {kind_of(hook)}\n{summary_of(hook)}\n")
    if not rows:
        click.echo("No plugin that is active here implements it.")
        return

    lines = table(tuple(key.upper() for key in rows[0]), [tuple(map(str, row.values())) for row in rows])
    click.echo("\n".join([*lines, "", RULE, *([GATES] if hook == "intervene" else [])]))


def rows_of(hook: str, hooks: Hooks) -> list[dict[str, Any]]:
    """One row per implementation, in calling order."""
    links: tuple[Link, ...] = getattr(hooks.plan, hook)
    ranks = [_rank(link, hooks) for link in links]
    return [
        {
            "plugin": link.plugin_name,
            **rank,
            "why": _why(rank, ranks[place - 1] if place else None, links[place - 1].plugin_name),
            "from": origin_of(type(hooks.plugins[link.index])),
            "defined": where(link.function),
        }
        for place, (link, rank) in enumerate(zip(links, ranks, strict=True))
    ]


def kind_of(hook: str) -> str:
    """How a hook is called, in a few words."""
    spec, options = HOOKS[hook], getattr(_specification(hook), SPEC_MARK)
    awaited = "awaited" if spec.is_async else "synchronous"
    if spec.is_chain:
        return f"{awaited}, a chain: the first is the outermost"

    return f"{awaited}, {'up to the first answer that is not None' if options['firstresult'] else 'all are called'}"


def summary_of(hook: str) -> str:
    """The first paragraph of a hook's documentation."""
    return (inspect.getdoc(_specification(hook)) or "").partition("\n\n")[0]


def _specification(hook: str) -> Any:
    return next(vars(group)[hook] for group in SPECS if hook in vars(group))


def _rank(link: Link, hooks: Hooks) -> dict[str, Any]:
    """What places an implementation, the weightiest first."""
    options = mark_of(link.function) or {}
    mark = "tryfirst" if options.get("tryfirst") else "trylast" if options.get("trylast") else "-"
    return {
        "tier": link.tier,
        "order": getattr(hooks.plugins[link.index], "order", 0),
        "mark": mark,
        "position": link.index + 1,
    }


def _why(rank: dict[str, Any], before: dict[str, Any] | None, name: str) -> str:
    if before is None:
        return "first"

    reason = next(key for key in rank if rank[key] != before[key])
    return f"after {name} by {'tryfirst, trylast' if reason == 'mark' else reason}"
