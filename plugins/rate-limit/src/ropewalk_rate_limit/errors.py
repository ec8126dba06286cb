"""What cannot be waited for."""

from __future__ import annotations

from typing import Any

from ropewalk.errors import ModelError


class RequestTooLargeError(ModelError):
    """A request is larger than all the tokens of a minute: it would wait for ever."""

    def __init__(self, model: str, tokens: int, allowed: int) -> None:
        self.model = model
        self.tokens = tokens
        self.allowed = allowed
        super().__init__(
            f"rate-limit: a request of about {tokens} tokens to {model} is larger than tokens_per_minute={allowed}: "
            "raise the limit, or shorten the conversation"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.tokens, self.allowed)
