"""From a model string to a model, through the plugin that provides it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ropewalk.errors import MissingPluginError, UnknownModelError
from ropewalk.kits.hooks.activation import owner_of, require_owner
from ropewalk.kits.hooks.parameters import PARAMETERS

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.model import Model

_DEFAULT_PROVIDER: Final = "bedrock"


def resolve_model(agent: Agent, spec: str | None) -> Model:
    """The model that a string stands for.

    Args:
        agent: The agent that needs it; its plugins are asked first.
        spec: `"provider:model-id"`, `"provider"` for its default model, a bare Bedrock id, or None for `ROPEWALK_MODEL`
            or the default provider.

    Raises:
        MissingPluginError: The provider is not installed.
        UnknownModelError: The provider does not know the model.
    """
    if spec is None:
        spec = os.environ.get("ROPEWALK_MODEL") or None

    if spec is not None and _is_provider(spec):
        spec += ":"  # a provider alone means its default model

    model = agent.hooks.provide_model(spec, agent)
    if model is not None:
        return model

    provider = _provider(spec)
    wanted = "Agent() without a model" if spec is None else f"model={spec!r}"
    if provider == _DEFAULT_PROVIDER and owner_of(f"model.{provider}") is None:
        raise _no_default(wanted)

    owner = require_owner(f"model.{provider}", wanted)
    model = agent.hooks.with_plugin(owner).provide_model(spec, agent)
    if model is None:
        raise UnknownModelError(
            f"{wanted}: the provider {provider!r} does not know this model: check the id in its documentation, or put "
            f"another provider before it, as in 'litellm:openai/gpt-4o' (known: {', '.join(_known())})"
        )

    return model


def _provider(spec: str | None) -> str:
    """The provider a string names. Bedrock ids contain colons too, so that only known providers count as prefixes."""
    prefix, colon, _ = (spec or "").partition(":")
    return prefix if colon and _is_provider(prefix) else _DEFAULT_PROVIDER


def _is_provider(name: str) -> bool:
    return f"model.{name}" in PARAMETERS or owner_of(f"model.{name}") is not None


def _no_default(wanted: str) -> MissingPluginError:
    distribution = PARAMETERS[f"model.{_DEFAULT_PROVIDER}"]
    hint = (
        f"pip install {distribution}, or name another provider as in model='local:qwen2.5-coder-1.5b' "
        f"(known: {', '.join(_known())}), or set ROPEWALK_MODEL"
    )
    return MissingPluginError(wanted, distribution, hint=hint)


def _known() -> list[str]:
    """The providers of this repository, installed or not."""
    return sorted(name.removeprefix("model.") for name in PARAMETERS if name.startswith("model."))
