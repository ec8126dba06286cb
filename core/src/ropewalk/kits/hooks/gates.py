"""The gates: in which order `intervene` is asked, and what its answers do.

Before something happens normal plugins are asked first and policies last, so that a policy sees what will really run.
Afterwards policies are asked first, so that nothing that they withhold is seen by others.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

from ropewalk.errors import PluginError
from ropewalk.kits.aio.deadlines import LATE, within
from ropewalk.kits.calls.verdicts import Guide, Moment, Refuse, Replace
from ropewalk.kits.hooks import verbs
from ropewalk.kits.hooks.blueprint import Link, Links
from ropewalk.kits.hooks.policy import policies
from ropewalk.kits.hooks.private import private
from ropewalk.kits.hooks.signatures import where

S = TypeVar("S")

_HIGHEST: Final = 2
TIME_LIMIT: Final = 30.0
"""Seconds a policy has for one answer, unless its `time_limit` says otherwise; without one a run could hang."""


async def pass_gates(
    links: Links, plugins: tuple[Any, ...], moment: Moment, subject: S, agent: Any, *, policies_only: bool = False
) -> tuple[S, Refuse | Guide | None]:
    """Asks everybody who intervenes, in the order of the moment.

    Where there are policies, they are asked about a subject that nobody else holds, and that very one is returned.

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
    after = moment.startswith("after")
    if asked and asked[-1 if not after else 0].rank and (moment != "after_model_call" or policies_only):
        subject = private(subject, agent)  # what comes straight from the model nobody else holds

    guides: list[str] = []
    while asked:
        subject, refusal, lowest = await _round(asked, plugins, moment, subject, agent, guides)
        if refusal is not None:
            return subject, refusal

        # Afterwards, what takes a subject's place is looked at by those who stand above whoever put it there.
        asked = [each for each in asked if each.rank > lowest] if after else []

    return subject, Guide("\n".join(guides)) if guides else None


class _Asked(NamedTuple):
    """Somebody to ask: 2 is a policy in force, 1 what calls itself a policy, 0 anybody else."""

    link: Link
    rank: int


async def _round(
    asked: list[_Asked], plugins: tuple[Any, ...], moment: Moment, subject: S, agent: Any, guides: list[str]
) -> tuple[S, Refuse | None, int]:
    """Asks each once: the subject, the refusal if there is one, and the lowest rank that has replaced the subject."""
    above = asked[0].rank
    lowest = _HIGHEST
    for link, rank in asked:
        if rank > above:  # those who were asked before may still hold it
            subject = private(subject, agent)

        verdict = await _ask(link, plugins, (moment, private(subject, agent) if rank < above else subject, agent))
        above = max(above, rank)
        if verdict is None:
            continue

        if isinstance(verdict, Refuse):
            return subject, verdict, lowest

        if isinstance(verdict, Guide) and moment.endswith("model_call"):
            guides.append(verdict.feedback)  # a refusal that follows outweighs it
            continue

        if not isinstance(verdict, Replace) or not isinstance(verdict.subject, type(subject)):
            raise PluginError(
                f"intervene of plugin {link.plugin_name!r} answered {verdict!r:.80} at {moment} "
                f"[{where(link.function)}]: return Refuse(reason), Replace(another {type(subject).__name__}) or None"
            )

        subject = private(verdict.subject, agent)
        lowest = min(lowest, rank)

    return subject, None, lowest


def _in_order(links: Links, plugins: tuple[Any, ...], moment: Moment, policies_only: bool) -> list[_Asked]:
    """The policies in force have the last word before, and the first afterwards; a plugin's own claim comes next."""
    in_force = {id(plugin) for plugin in policies().values()}
    ranked = [_Asked(each, _rank(each, id(plugins[each.index]) in in_force)) for each in links]
    if policies_only:
        ranked = [each for each in ranked if each.rank]

    return sorted(ranked, key=lambda each: each.rank, reverse=moment.startswith("after"))  # others keep their places


def _rank(link: Link, in_force: bool) -> int:
    return _HIGHEST if in_force else int(link.tier == "policy")


async def _ask(link: Link, plugins: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
    asking = verbs.first((link,), plugins, arguments)
    if link.tier != "policy":
        return await asking

    # A policy that swallows its cancellation is left behind instead of holding up the run.
    limit = getattr(plugins[link.index], "time_limit", TIME_LIMIT)
    answer = await within(limit, asking)
    if answer is LATE:
        raise PluginError(
            f"the policy {link.plugin_name!r} did not answer within {limit} s at {arguments[0]} "
            f"[{where(link.function)}]: nothing passes; make it faster, or set its time_limit"
        )

    return answer
