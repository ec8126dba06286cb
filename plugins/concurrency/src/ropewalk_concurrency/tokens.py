"""What notes the calls with tokens of an agent, so that their repetitions find them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, final

from ropewalk import AgentResult, Denied, EventLoopMetrics, Invocation, current_run, hookimpl
from ropewalk_concurrency.flights import Inside, Outcome

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk_concurrency.book import Books

TOKEN: Final = "idempotency_token"  # noqa: S105 - the name of an option


@final
class TokenKeeper:
    """Added to an agent by its first call with a token: others pay nothing."""

    name = "concurrency-tokens"
    order = -1000  # outermost: what repeats a call gets the result that its caller gets

    def __init__(self, books: Books) -> None:
        self._books = books

    @hookimpl
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Lets calls with the same token find this one, and answers this one when its result is remembered."""
        token, book = invocation.options.given.get(TOKEN), self._books.of(agent)
        if token is None:
            book.begin_without_token(current_run().id, agent)
            return await call_next(invocation)

        flight = book.begin(current_run().id, token, agent)
        if isinstance(flight, AgentResult):
            return flight

        flight.loop = current_run().cancellation.loop
        try:
            with Inside(flight):
                result = await call_next(invocation)
        except BaseException as error:
            book.end(flight, error)
            raise

        book.end(flight, _told(result))
        return result


def _told(result: AgentResult | Denied) -> Outcome:
    """What those who repeat a call get; a refusal becomes a result beyond the hooks."""
    if isinstance(result, Denied):
        return AgentResult("end_turn", {"role": "assistant", "content": [{"text": result.text}]}, EventLoopMetrics())

    return result
