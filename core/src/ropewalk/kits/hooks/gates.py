"""The gates: in which order `intervene` is asked, and what its answers do.

Before something happens normal plugins are asked first and policies last, so that a policy sees what will really run.
Afterwards policies are asked first, so that nothing that they withhold is seen by others.
"""

from __future__ import annotations

import asyncio
import copy
from typing import Any, Final, TypeVar

from ropewalk.errors import PluginError
from ropewalk.kits.calls.outcomes import ModelOutcome
from ropewalk.kits.calls.verdicts import Guide, Moment, Refuse, Replace
from ropewalk.kits.hooks import verbs
from ropewalk.kits.hooks.blueprint import Link, Links
from ropewalk.kits.hooks.policy import policies
from ropewalk.kits.hooks.signatures import where

S = TypeVar("S")

TIME_LIMIT: Final = 30.0
"""Seconds a policy has for one answer, unless its `time_limit` says otherwise; without one a run could hang."""


async def pass_gates(
    links: Links, plugins: tuple[Any, ...], moment: Moment, subject: S, agent: Any, *, policies_only: bool = False
) -> tuple[S, Refuse | Guide | None]:
    """Asks everybody who intervenes, in the order of the moment.

    Args:
        links: The implementations, policies first.
        plugins: The agent's plugins.
        moment: Which gate.
        subject: What passes it.
        agent: The agent that runs.
        policies_only: Whether this is the last look at what is about to be stored.

    Returns:
        The subject, as replaced, and the refusal, or the feedback of all who guide, if there is one.

    Raises:
        PluginError: An answer is no verdict, replaces the subject by something else, or a policy does not answer.
        Exception: What an implementation raised; the subject has not passed.
    """
    asked = _in_order(links, plugins, moment, policies_only)
    guides: list[str] = []
    for place, link in enumerate(asked):
        verdict = await _ask(link, plugins, (moment, subject, agent))
        if verdict is None:
            continue

        if isinstance(verdict, Refuse):
            return subject, verdict

        if isinstance(verdict, Guide) and moment.endswith("model_call"):
            guides.append(verdict.feedback)  # a refusal that follows outweighs it
            continue

        if not isinstance(verdict, Replace) or not isinstance(verdict.subject, type(subject)):
            raise PluginError(
                f"intervene of plugin {link.plugin_name!r} answered {verdict!r:.80} at {moment} "
                f"[{where(link.function)}]: return Refuse(reason), Replace(another {type(subject).__name__}) or None"
            )

        subject = _private(verdict.subject)
        if (
            moment.startswith("after")
            and link.tier != "policy"
            and any(each.tier == "policy" for each in asked[:place])
        ):
            subject, verdict = await _from_here(links, plugins, moment, subject, agent, asked[place + 1 :])
            if isinstance(verdict, Refuse):
                return subject, verdict

            guides += [] if verdict is None else [verdict.feedback]
            break

    return subject, Guide("\n".join(guides)) if guides else None


async def _from_here(
    links: Links, plugins: tuple[Any, ...], moment: Moment, subject: S, agent: Any, rest: list[Link]
) -> tuple[S, Refuse | Guide | None]:
    """Goes on with those not yet asked, and lets the policies look again at what took the subject's place."""
    guide: Refuse | Guide | None = None
    if rest:
        subject, guide = await pass_gates(tuple(rest), plugins, moment, subject, agent)
        if isinstance(guide, Refuse):
            return subject, guide

    subject, verdict = await pass_gates(links, plugins, moment, subject, agent, policies_only=True)
    return subject, verdict or guide


def _private(subject: S) -> S:
    """A copy that whoever put the subject in cannot write to while others think about it."""
    private = getattr(subject, "private", None)
    if callable(private):
        return private()  # type: ignore[no-any-return]

    return copy.deepcopy(subject) if isinstance(subject, dict | ModelOutcome) else subject


def _in_order(links: Links, plugins: tuple[Any, ...], moment: Moment, policies_only: bool) -> list[Link]:
    """The policies in force have the last word before, and the first afterwards; a plugin's own claim comes next."""
    in_force = {id(plugin) for plugin in policies().values()}
    outermost = [link for link in links if id(plugins[link.index]) in in_force]
    claimed = [link for link in links if link.tier == "policy" and link not in outermost]
    others = [link for link in links if link.tier != "policy"]
    if policies_only:
        others = []

    return others + claimed + outermost if moment.startswith("before") else outermost + claimed + others


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
