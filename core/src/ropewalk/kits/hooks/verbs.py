"""The ways in which implementations are called. `hooks.facade` has one typed method per hook in front of them.

Errors of policy and normal plugins reach the caller at once, with a note that names hook, plugin and distribution.
Errors of observers are logged and stop nobody. What is no `Exception` (cancellation, suspension) is never held.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from ropewalk.errors import PluginError
from ropewalk.kits.hooks.answers import checked_answer
from ropewalk.kits.hooks.blueprint import Link, Links
from ropewalk.kits.hooks.origin import origin_of
from ropewalk.kits.hooks.signatures import HOOKS, code_of, where

logger = logging.getLogger("ropewalk.hooks")

Plugins = tuple[Any, ...]
S = TypeVar("S")
R = TypeVar("R")

# -- synchronous hooks -------------------------------------------------------------------------------------------


def call(links: Links, plugins: Plugins, arguments: tuple[Any, ...]) -> list[Any]:
    """Calls every implementation in order and returns the answers that are not None."""
    answers: list[Any] = []
    for link in links:
        try:
            answer = link.call(plugins[link.index], *arguments)
            if answer is not None:
                answers.append(_settled(answer, link))
        except Exception as error:
            if not _tolerated(error, link, plugins):
                raise

    return answers


def call_first(links: Links, plugins: Plugins, arguments: tuple[Any, ...]) -> Any:
    """Calls in order up to the first answer that is not None, and returns it; None when nobody has an answer."""
    for link in links:
        try:
            answer = link.call(plugins[link.index], *arguments)
            if answer is not None:
                return checked_answer(_settled(answer, link), link)
        except Exception as error:
            if not _tolerated(error, link, plugins):
                raise

    return None


def collect(links: Links, plugins: Plugins, arguments: tuple[Any, ...]) -> list[Any]:
    """Calls every implementation in order and joins the lists that they return.

    Raises:
        PluginError: An implementation returned something else than a list, a tuple or None.
    """
    joined: list[Any] = []
    for link in links:
        for answer in call((link,), plugins, arguments):
            checked = checked_answer(answer, link)
            if not isinstance(checked, list | tuple):
                raise PluginError(
                    f"{link.hook} of plugin {link.plugin_name!r} returned {type(answer).__name__}, not a list "
                    f"[{where(link.function)}]: return a list, also for one or none"
                )

            joined.extend(checked)

    return joined


# -- awaited hooks -----------------------------------------------------------------------------------------------


async def gather(links: Links, plugins: Plugins, arguments: tuple[Any, ...]) -> None:
    """Awaits every implementation, one after the other."""
    for link in links:
        try:
            await link.call(plugins[link.index], *arguments)
        except Exception as error:
            if not _tolerated(error, link, plugins):
                raise


async def first(links: Links, plugins: Plugins, arguments: tuple[Any, ...]) -> Any:
    """Awaits in order up to the first answer that is not None, and returns it; None when nobody has an answer."""
    for link in links:
        try:
            answer = await link.call(plugins[link.index], *arguments)
        except Exception as error:
            if not _tolerated(error, link, plugins):
                raise
        else:
            if answer is not None:
                return checked_answer(answer, link)

    return None


async def each(links: Links, plugins: Plugins, arguments: tuple[Any, ...], take: Callable[[str, Any], None]) -> None:
    """Awaits every implementation, and hands its plugin's name and its answer to `take` before the next is asked."""
    for link in links:
        try:
            answer = await link.call(plugins[link.index], *arguments)
            if answer is not None:
                answer = checked_answer(answer, link)
        except Exception as error:
            if not _tolerated(error, link, plugins):
                raise

            answer = None

        take(link.plugin_name, answer)


async def close(links: Links, plugins: Plugins, arguments: tuple[Any, ...]) -> None:
    """Awaits every implementation, whatever the others raise.

    Raises:
        ExceptionGroup: The errors of those that failed.
        BaseException: The first one that is no `Exception`, when all have run; errors beside it are logged.
    """
    errors: list[Exception] = []
    halted: BaseException | None = None
    try:
        for link in links:
            try:
                await gather((link,), plugins, arguments)
            except BaseException as error:  # noqa: BLE001 - all run first, then it is raised
                if isinstance(error, Exception):
                    errors.append(error)
                else:
                    halted = halted or error

        if halted is not None:
            for each in errors:
                logger.error("an error of %s gives way to %r", links[0].hook, halted, exc_info=each)

            raise halted

        if errors:
            raise ExceptionGroup(f"{len(errors)} of {len(links)} plugins failed in {links[0].hook}", errors)
    finally:
        errors, halted = [], None  # or the errors' own frames would refer to them


# -- chains ------------------------------------------------------------------------------------------------------


def around(
    links: Links, plugins: Plugins, inner: Callable[[S], Awaitable[R]], agent: Any
) -> Callable[[S], Awaitable[R]]:
    """Composes a chain around a step of the kernel.

    Args:
        links: The implementations, outermost first.
        plugins: The agent's plugins.
        inner: The step. An `async def`: errors are told from the links' own by its frame in the traceback.
        agent: Handed to every link.

    Returns:
        A function that runs the whole chain; `inner` itself when there are no links.
    """
    if not links:
        return inner

    step = inner
    for link in reversed(links):
        step = _wrapped(link.call, plugins[link.index], step, agent)

    async def chain(subject: S) -> R:
        try:
            outcome = await step(subject)
        except Exception as error:
            _blame(error, links, plugins, inner)
            raise

        if outcome is None:
            raise _nothing(links)

        return outcome

    return chain


def _wrapped(
    implementation: Callable[..., Awaitable[R]], plugin: Any, call_next: Callable[[S], Awaitable[R]], agent: Any
) -> Callable[[S], Awaitable[R]]:
    # Not async: a coroutine per link would double the cost of a chain.
    return lambda subject: implementation(plugin, subject, call_next, agent)


def _blame(error: Exception, links: Links, plugins: Plugins, inner: Callable[..., Any]) -> None:
    """Adds a note when the error arose in a link itself and not further in. Runs on the error path only."""
    places = {code_of(link.function): link for link in links}
    inside = code_of(inner)
    culprit: Link | None = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        culprit = places.get(code, culprit) if code is not inside else None
        trace = trace.tb_next

    if culprit is not None:
        _note(error, culprit, plugins)


def _nothing(links: Links) -> PluginError:
    places = ", ".join(where(link.function) for link in links)
    return PluginError(
        f"the chain {links[0].hook} returned None ({_names(links)} [{places}]): "
        "end every path of an implementation with `return await call_next(...)` or an outcome of its own"
    )


# -- errors ------------------------------------------------------------------------------------------------------


def _tolerated(error: Exception, link: Link, plugins: Plugins) -> bool:
    """Logs an observer's error; gives any other a note and leaves it to the caller to raise it again."""
    if link.observer:
        logger.error(
            "the observer %s (%s) failed in %s; the run goes on",
            link.plugin_name,
            origin_of(type(plugins[link.index])),
            link.hook,
            exc_info=error,
        )
        return True

    _note(error, link, plugins)
    return False


def _note(error: Exception, link: Link, plugins: Plugins) -> None:
    note = f"in the hook {link.hook} of the plugin {link.plugin_name} ({origin_of(type(plugins[link.index]))})"
    if note not in getattr(error, "__notes__", ()):  # an error object that is raised many times gets one note
        error.add_note(note)


def _settled(answer: Any, link: Link) -> Any:
    """The answer of a synchronous hook, unless it is an awaitable that nobody would await."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()

        raise PluginError(
            f"{link.hook} of plugin {link.plugin_name!r} returned an awaitable and the hook is synchronous "
            f"[{where(link.function)}]: return the value itself: `{HOOKS[link.hook].example}`"
        )

    return answer


def _names(links: Iterable[Link]) -> str:
    return ", ".join(link.plugin_name for link in links)
