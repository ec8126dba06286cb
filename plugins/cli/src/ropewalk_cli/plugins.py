"""`ropewalk plugins`: what is installed, what is active, who provides what, in which order; and its commands."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ropewalk.errors import PluginError
from ropewalk.kits.hooks import assemble, describe_plugins, order_of, owners_of
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.kits.terminal import table
from ropewalk_cli.checking import check
from ropewalk_cli.explaining import explain
from ropewalk_cli.main import debug_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ropewalk.kits.hooks.reports import PluginReport


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@debug_option
@click.pass_context
def plugins(context: click.Context, as_json: bool) -> None:
    """Shows the installed plugins, the provider of each role and the order in each hook.

    All of it as an agent without plugins= of its own would have it in this environment.
    """
    if context.invoked_subcommand is not None:
        return

    reports = describe_plugins()
    found = {
        "plugins": [asdict(report) | {"state": state_of(report)} for report in reports],
        "providers": providers(reports),
        "order": hook_order(),
    }
    click.echo(json.dumps(found, indent=2) if as_json else as_text(reports, found))


plugins.add_command(check)
plugins.add_command(explain)


def state_of(report: PluginReport) -> str:
    """One word for whether a plugin takes part."""
    if report.error is not None:
        return "broken"
    if report.active:
        return "active"

    return "on demand" if report.on_demand else "off"


def providers(reports: Iterable[PluginReport]) -> dict[str, list[str]]:
    """Parameters of the agent, and model and sandbox prefixes, with the plugins that are asked for each, in order."""
    provided = sorted({parameter for report in reports for parameter in report.provides})
    return {parameter: list(owners_of(parameter)) for parameter in provided}


def hook_order() -> dict[str, list[str]]:
    """For each hook that is implemented, the plugins in calling order; a chain's outermost first."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # broken plugins are shown as such
            hooks = assemble(None, {}, None)
    except PluginError as error:
        click.secho(f"Warning: no agent can be built here: {error}", fg="yellow", err=True)
        return {}

    orders = {hook: order_of(hook, hooks) for hook in HOOKS}
    return {hook: names for hook, names in orders.items() if names}


def as_text(reports: Sequence[PluginReport], found: dict[str, Any]) -> str:
    """The report for a person."""
    if not reports:
        return "No plugins are installed: pip install ropewalk"

    rows = [
        (report.name, state_of(report), report.version, report.distribution + (" (bundled)" if report.bundled else ""))
        for report in reports
    ]
    lines = [*table(("PLUGIN", "STATE", "VERSION", "FROM"), rows)]
    lines += [f"\n{report.name}: {report.error}" for report in reports if report.error]
    if found["providers"]:
        lines += ["", *table(("ROLE", "PROVIDED BY"), _joined(found["providers"]))]
    if found["order"]:
        lines += ["", *table(("HOOK", "ORDER"), _joined(found["order"]))]

    return "\n".join(lines)


def _joined(names: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    return [(key, ", ".join(each)) for key, each in names.items()]
