"""The options of one call beside its prompt: who owns them, and what happens when nobody does."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, TypedDict

from ropewalk.errors import MissingPluginError
from ropewalk.kits.hooks.activation import owners_of, require_owner
from ropewalk.kits.hooks.discovery import registry

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ropewalk.kits.hooks.facade import Hooks

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


def checked_given(given: Any, invocation_state: dict[str, Any], hooks: Hooks) -> dict[str, Any]:
    """The options that were set to something. Keywords that are none go into the invocation state, with a warning.

    Raises:
        MissingPluginError: The plugin of an option is not installed, or not active in this agent.
    """
    unknown = {name: given[name] for name in given if name not in OWNED}
    if unknown:
        name = next(iter(unknown))
        warnings.warn(
            f"keyword {name!r} of an agent's call is no option and goes into the invocation state: "
            f"pass invocation_state={{{name!r}: ...}}; keywords of your own will be refused",
            DeprecationWarning,
            stacklevel=4,
        )
        invocation_state.update(unknown)
        given = {name: value for name, value in given.items() if name in OWNED}

    kept = {name: value for name, value in given.items() if value is not None}
    for name in kept:
        wanted = f"agent(..., {name}=...)"
        owner = require_owner(name, wanted)
        owners = owners_of(name)
        if all(plugin.name not in owners for plugin in hooks.plugins):
            distribution = registry().installed[owner].distribution
            raise MissingPluginError(wanted, distribution, hint=f"the plugin {owner!r} is switched off: add it")

    return kept
