"""The options of one call beside its prompt: who owns them, and what happens when nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from ropewalk.kits.hooks.activation import require_owner

if TYPE_CHECKING:
    from pydantic import BaseModel

OWNED: Final = ("structured_output_model", "structured_output_prompt", "idempotency_token", "limits")


class CallGiven(TypedDict, total=False):
    """Keywords of a call that plugins act on.

    Attributes:
        structured_output_model: Pydantic model that this answer must fill (plugin structured).
        structured_output_prompt: Asks for structured output when the model did not give it (plugin structured).
        idempotency_token: Calls with equal tokens in flight share one run (plugin concurrency).
        limits: Budget of this call (plugin limits).
    """

    structured_output_model: type[BaseModel] | None
    structured_output_prompt: str | None
    idempotency_token: Any
    limits: Any


def checked_given(given: Any) -> dict[str, Any]:
    """The options that were set to something.

    Raises:
        TypeError: An option that does not exist.
        MissingPluginError: The plugin of an option is not installed.
    """
    unknown = [name for name in given if name not in OWNED]
    if unknown:
        raise TypeError(
            f"unknown option {unknown[0]!r} of an agent's call: "
            f"pass your own values in invocation_state={{{unknown[0]!r}: ...}}"
        )

    kept = {name: value for name, value in given.items() if value is not None}
    for name in kept:
        require_owner(name, f"agent(..., {name}=...)")

    return kept
