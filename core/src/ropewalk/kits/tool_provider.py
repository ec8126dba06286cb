"""A collection of tools that is opened for its consumers and closed after the last one, such as a server's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ropewalk.tools import Tool


class ToolProvider(ABC):
    """What may stand in `tools=` for the tools that it brings. Several agents may share one.

    An agent registers as a consumer and loads the tools once, when it is built; it leaves when it is closed, or at the
    latest when it is gone. What has the three methods is a provider, derived from this class or not.
    """

    @abstractmethod
    async def load_tools(self, **kwargs: Any) -> Sequence[Tool]:
        """Opens what is needed and gives the tools; called once by each consumer.

        May run on another event loop than the agent's runs. A plain method will do as well.
        """

    @abstractmethod
    def add_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
        """Notes that somebody uses the tools from now on; called before `load_tools`."""

    @abstractmethod
    def remove_consumer(self, consumer_id: Any, **kwargs: Any) -> None:
        """Notes that somebody does not use the tools any more, and closes everything after the last one.

        Called once for each `add_consumer`; after a failed `load_tools` too.
        """
