"""Tool providers: an agent is their consumer from its construction until it is closed."""

from __future__ import annotations

import inspect
import logging
import uuid
import weakref
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.aio.blocking import run_blocking
from ropewalk.tool_entries import collect_tools

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.kits.tool_provider import ToolProvider
    from ropewalk.tools import Tool

_log = logging.getLogger("ropewalk.tools")
_METHODS: Final = ("load_tools", "add_consumer", "remove_consumer")


class _Consumer:
    """One agent as its providers know it."""

    __slots__ = ("id", "leave_at_the_latest", "providers")

    def __init__(self, agent: Agent) -> None:
        self.id = uuid.uuid4().hex
        self.providers: list[ToolProvider] = []
        self.leave_at_the_latest = weakref.finalize(agent, _leave_quietly, self.providers, self.id)


_consumers: Final[weakref.WeakKeyDictionary[Agent, _Consumer]] = weakref.WeakKeyDictionary()


def is_provider(value: object) -> bool:
    """Whether the value has what is asked of a tool provider."""
    return not isinstance(value, type) and all(callable(getattr(value, method, None)) for method in _METHODS)


def tools_of_provider(provider: ToolProvider, agent: Agent) -> list[Tool]:
    """The provider's tools, loaded now; none when the agent has loaded them already.

    Raises:
        ToolDefinitionError: They cannot be loaded; the agent is no consumer then.
    """
    consumer = _consumers.get(agent)
    if consumer is None:
        consumer = _consumers[agent] = _Consumer(agent)

    if any(known is provider for known in consumer.providers):
        return []

    where = f"tool provider {type(provider).__name__}"
    try:
        provider.add_consumer(consumer.id)
    except Exception as error:
        raise ToolDefinitionError(f"{where} takes no consumer: {type(error).__name__}: {error}") from error

    consumer.providers.append(provider)
    try:
        return list(collect_tools(agent, _loaded(provider)))
    except Exception as error:
        consumer.providers.remove(provider)
        _leave_quietly([provider], consumer.id)
        raise ToolDefinitionError(
            f"{where} could not load its tools: {type(error).__name__}: {error}: see whether what it needs is there"
        ) from error


async def leave_providers(agent: Agent) -> None:
    """Ends the agent's part in all its providers.

    Raises:
        ExceptionGroup: Some failed; all were told.
    """
    consumer = _consumers.pop(agent, None)
    if consumer is None:
        return

    consumer.leave_at_the_latest.detach()
    errors: list[Exception] = []
    for provider in consumer.providers:
        try:
            left: Any = provider.remove_consumer(consumer.id)  # may be async
            if inspect.isawaitable(left):
                await left
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    if errors:
        raise ExceptionGroup(f"{len(errors)} tool providers failed to clean up", errors)


def _loaded(provider: ToolProvider) -> Any:
    loaded: Any = provider.load_tools()
    return run_blocking(lambda: _awaited(loaded), lambda: None) if inspect.isawaitable(loaded) else loaded


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _leave_quietly(providers: list[ToolProvider], consumer_id: str) -> None:
    """For an agent that is gone without having been closed: nobody is there to tell, or to wait."""
    for provider in providers:
        try:
            left: Any = provider.remove_consumer(consumer_id)  # may be async
            if inspect.iscoroutine(left):
                left.close()
                _log.warning(
                    "tool provider %s was not told to clean up, which it does asynchronously: close the agent",
                    type(provider).__name__,
                )
        except Exception:  # noqa: BLE001 - it is logged, and the others are told too
            _log.exception("tool provider %s failed to clean up", type(provider).__name__)
