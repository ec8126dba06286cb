"""`ropewalk diff`: what two conversations have in common, and what not."""

from __future__ import annotations

from difflib import unified_diff

import click

from ropewalk.kits.sessions.opening import opened
from ropewalk_views.locating import agent_option, log_at, say, store_option
from ropewalk_views.rendering import lines_of


@click.command()
@click.argument("a")
@click.argument("b")
@store_option
@click.option("--other-store", metavar="STORE", help="Where B is kept, if not in the store of A.")
@agent_option
@click.option("--context", "-U", "around", type=click.IntRange(min=0), default=3, help="Lines around a difference.")
def diff(a: str, b: str, store: str | None, other_store: str | None, agent_id: str | None, around: int) -> None:
    """Compares sessions A and B: messages, state, the state of plugins, and what they wait for.

    Each is SESSION, or SESSION@N for its first N records. Nothing is printed when they are the same.
    """
    with opened(store) as here, opened(other_store if other_store is not None else store) as there:
        first, second = log_at(here, a, agent_id), log_at(there, b, agent_id)
        before, after = lines_of(first.state()), lines_of(second.state())

    for line in unified_diff(before, after, first.label, second.label, n=around, lineterm=""):
        say(line)
