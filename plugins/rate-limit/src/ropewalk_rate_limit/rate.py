"""How much a minute."""

from __future__ import annotations

import pydantic


class Rate(pydantic.BaseModel):
    """What may be used in any 60 seconds.

    Attributes:
        requests_per_minute: Model calls; None is no limit.
        tokens_per_minute: Tokens read and written; None is no limit.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    requests_per_minute: int | None = pydantic.Field(default=None, ge=1)
    tokens_per_minute: int | None = pydantic.Field(default=None, ge=1)

    @property
    def is_none(self) -> bool:
        """Whether nothing is limited."""
        return self.requests_per_minute is None and self.tokens_per_minute is None
