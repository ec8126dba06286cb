"""Every error of the kernel. Each says what happened, to what, and what to do."""

from __future__ import annotations


class RopewalkError(Exception):
    """Base of all errors that Ropewalk raises on purpose."""


# -- plugins -----------------------------------------------------------------------------------------------------


class PluginError(RopewalkError, ValueError):
    """A plugin cannot be loaded, does not fit the hook specifications, or refuses its options."""


class MissingPluginError(PluginError):
    """Something was asked for whose plugin is not installed or not active.

    Attributes:
        wanted: What was asked for, as the user wrote it.
        distribution: The pip name that provides it.
    """

    def __init__(self, wanted: str, distribution: str, *, hint: str | None = None) -> None:
        self.wanted = wanted
        self.distribution = distribution
        super().__init__(f"{wanted} needs the plugin {distribution}: {hint or f'pip install {distribution}'}")


# -- input -------------------------------------------------------------------------------------------------------


class InvalidPromptError(RopewalkError, ValueError):
    """The prompt has none of the accepted forms."""


class HistoryError(RopewalkError, ValueError):
    """The conversation was edited at a bad time or into a bad shape."""


class SnapshotException(RopewalkError, ValueError):
    """A snapshot cannot be taken as asked, or cannot be loaded."""


class ToolDefinitionError(RopewalkError, ValueError):
    """A tool cannot be registered: its name, its schema or what was given as a tool is wrong."""


# -- models ------------------------------------------------------------------------------------------------------


class ModelError(RopewalkError):
    """A model call failed.

    Attributes:
        retryable: Whether the same request may succeed later.
        retry_after: Seconds that the provider asks to wait, or None.
        provider, code, status, failure: Who reported it and how, and its kind (`ropewalk.kits.model_errors`), or None.
    """

    retryable: bool = False
    provider: str | None = None
    code: str | None = None
    status: int | None = None
    failure: str | None = None

    def __init__(self, message: str, *, retryable: bool | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable
        self.retry_after = retry_after


class UnknownModelError(ModelError, ValueError):
    """A model string names no provider or no model of that provider."""


class ModelThrottledException(ModelError):
    """The provider wants fewer requests."""

    retryable = True


class IncompleteStreamError(ModelError):
    """The stream ended before its `messageStop`; nothing of it is kept."""

    retryable = True


class MalformedStreamError(ModelError):
    """The stream has an event that is none; nothing of it is kept."""

    retryable = True


class ContextWindowOverflowException(ModelError):
    """The request does not fit into the model's window."""


class MaxTokensReachedException(ModelError):
    """The answer was cut at the token limit. The partial message is in the history, without its tool uses."""


# -- runs --------------------------------------------------------------------------------------------------------


class ConcurrencyException(RopewalkError):
    """The agent is busy with another invocation."""


class ToolOutcomeUnknownError(RopewalkError):
    """A tool was running when its process ended, and is declared to fail the run then (`on_unknown="fail"`)."""


class AgentClosedError(RopewalkError):
    """The agent was closed."""
