"""The gates: in which order `intervene` is asked, and what its answers do.

Before something happens normal plugins are asked first and policies last, so that a policy sees what will really run.
Afterwards policies are asked first, so that nothing that they withhold is seen by others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from ropewalk.errors import PluginError
from ropewalk.kits.hooks import verbs
from ropewalk.kits.hooks.blueprint import Link, Links
from ropewalk.kits.hooks.signatures import where
from ropewalk.verdicts import Moment, Refuse, Replace

S = TypeVar("S")

TIME_LIMIT: Final = 30.0
"""Seconds a policy has for one answer, unless its `time_limit` says otherwise; without one a run could hang."""


async def pass_gates(
    links: Links, plugins: tuple[Any, ...], moment: Moment, subject: S, agent: Any, *, policies_only: bool = False
) -> tuple[S, Refuse | None]:
    """Asks everybody who intervenes, in the order of the moment.

    Args:
        links: The implementations, policies first.
        plugins: The agent's plugins.
        moment: Which gate.
        subject: What passes it.
        agent: The agent that runs.
        policies_only: Whether this is the last look at what is about to be stored.

    Returns:
        The subject, as replaced, and the refusal if there is one.

    Raises:
        PluginError: An answer is no verdict, replaces the subject by something else, or a policy does not answer.
        Exception: What an implementation raised; the subject has not passed.
    """
    for link in _in_order(links, moment, policies_only):
        verdict = await _ask(link, plugins, (moment, subject, agent))
        if verdict is None:
            continue

        if isinstance(verdict, Refuse):
            return subject, verdict

        if not isinstance(verdict, Replace) or not isinstance(verdict.subject, type(subject)):
            raise PluginError(
                f"intervene of plugin {link.plugin_name!r} answered {verdict!r:.80} at {moment} "
                f"[{where(link.function)}]: return Refuse(reason), Replace(another {type(subject).__name__}) or None"
            )

        subject = verdict.subject

    return subject, None


def _in_order(links: Links, moment: Moment, policies_only: bool) -> Iterable[Link]:
    policies = [link for link in links if link.tier == "policy"]
    if policies_only:
        return policies

    others = [link for link in links if link.tier != "policy"]
    return others + policies if moment.startswith("before") else policies + others


async def _ask(link: Link, plugins: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
    asking = verbs.first((link,), plugins, arguments)
    if link.tier != "policy":
        return await asking

    # A task of its own: a policy that swallows its cancellation is left behind instead of holding up the run.
    limit = getattr(plugins[link.index], "time_limit", TIME_LIMIT)
    task = asyncio.ensure_future(asking)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit)
    finally:
        if not task.done():
            task.cancel()

    if not done:
        raise PluginError(
            f"the policy {link.plugin_name!r} did not answer within {limit} s at {arguments[0]} "
            f"[{where(link.function)}]: nothing passes; make it faster, or set its time_limit"
        )

    return task.result()
