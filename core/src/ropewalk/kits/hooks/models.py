"""From a model string to a model, through the plugin that provides it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from ropewalk.errors import MissingPluginError, UnknownModelError
from ropewalk.kits.hooks.activation import owners_of, require_owner
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.parameters import PARAMETERS
from ropewalk.kits.hooks.refusals import did_you_mean

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.model import Model

_VARIABLE: Final = "ROPEWALK_MODEL"
_DEFAULT_PROVIDER: Final = "bedrock"
_MANY: Final = "ropewalk-litellm"
_EXAMPLE: Final = "litellm:openai/gpt-4o"
_NAMED: Final = re.compile(r"([\w-]+)[:/](.*)", re.DOTALL)
_NO_PREFIXES: Final = frozenset({"arn", "http", "https"})
"""What may stand before the first colon of a text that names no provider."""


def resolve_model(agent: Agent, spec: str | None) -> Model:
    """The model that a string stands for.

    Args:
        agent: The agent that needs it; its plugins are asked first.
        spec: `"provider:model-id"`, `"provider"` for its default model, a bare Bedrock id, or None for `ROPEWALK_MODEL`
            or the default provider.

    Raises:
        MissingPluginError: The provider is not installed.
        UnknownModelError: There is no such provider, or it does not know the model.
    """
    wanted = "Agent() without a model" if spec is None else f"model={spec!r}"
    if spec is None and os.environ.get(_VARIABLE):
        spec = os.environ[_VARIABLE]
        wanted = f"{_VARIABLE}={spec!r}"

    if spec is not None and _is_provider(spec):
        spec += ":"  # a provider alone means its default model

    model = agent.hooks.provide_model(spec, agent)
    if model is not None:
        return model

    provider = _provider(spec)
    for owner in _owners(provider, wanted, agent):
        model = agent.hooks.with_plugin(owner).provide_model(spec, agent)
        if model is not None:
            return model

    named = _NAMED.match(spec or "") if provider == _DEFAULT_PROVIDER else None
    if named is not None and named[1] not in _NO_PREFIXES:
        raise _no_such_prefix(wanted, *named.groups())

    if not owners_of(f"model.{provider}"):
        raise _no_default(wanted)

    raise UnknownModelError(
        f"{wanted}: the provider {provider!r} does not know this model: check the id in its documentation, or put "
        f"another provider before it, as in 'litellm:openai/gpt-4o' ({_installed()})"
    )


def _owners(provider: str, wanted: str, agent: Agent) -> tuple[str, ...]:
    """The plugins to ask for a model of a provider; none when the default provider's is missing."""
    owners = owners_of(f"model.{provider}")
    if not owners and provider != _DEFAULT_PROVIDER:
        require_owner(f"model.{provider}", wanted)  # says what to install

    return tuple(owner for owner in owners if owner not in agent.hooks.off) or owners  # all off: asking one says so


def _provider(spec: str | None) -> str:
    """The provider a string names. Bedrock ids contain colons too, so that only known providers count as prefixes."""
    prefix, colon, _ = (spec or "").partition(":")
    return prefix if colon and _is_provider(prefix) else _DEFAULT_PROVIDER


def _is_provider(name: str) -> bool:
    return f"model.{name}" in PARAMETERS or bool(owners_of(f"model.{name}"))


def _no_such_prefix(wanted: str, prefix: str, rest: str) -> UnknownModelError:
    """The error of a string that names a provider which no plugin is."""
    known = {name.removeprefix("model.") for name in (*PARAMETERS, *registry().owners) if name.startswith("model.")}
    example = f"litellm:{prefix}/{rest}" if rest else _EXAMPLE
    many = f"{_MANY} brings other providers: {'' if owners_of('model.litellm') else f'pip install {_MANY} and '}"
    return UnknownModelError(
        f"{wanted}: no plugin provides the prefix {prefix!r}: {did_you_mean(prefix, known)}{_installed()}; {many}"
        f"write {example!r}"
    )


def _no_default(wanted: str) -> MissingPluginError:
    distribution = PARAMETERS[f"model.{_DEFAULT_PROVIDER}"]
    hint = (
        f"pip install {distribution}, or name another provider, as in model='local:qwen2.5-coder-1.5b' "
        f"({_installed()}; {_MANY} brings many, as in {_EXAMPLE!r}), or set {_VARIABLE} to such a text"
    )
    return MissingPluginError(wanted, distribution, hint=hint)


def _installed() -> str:
    names = sorted(name.removeprefix("model.") for name in registry().owners if name.startswith("model."))
    return f"installed are {', '.join(names)}" if names else "none is installed"
