"""The plugin: turns `local` and `local:...` into models, and brings the `models` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ropewalk import hookimpl

if TYPE_CHECKING:
    from ropewalk_local.model import LocalModel

_PREFIX: Final = "local"


class LocalPlugin:
    """Provides models that run in this process.

    Args:
        settings: Keyword arguments of `LocalModel` for the models that this plugin makes (`n_ctx`, `threads`,
            `max_tokens`, `temperature`, `seed`, `parallel`, `check_memory`).
    """

    name = "local"

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    @hookimpl
    def provide_model(self, spec: str | None) -> LocalModel | None:
        """A model for `local` (the default one) or `local:<name or path>`."""
        prefix, _, model_id = (spec or "").partition(":")
        if prefix != _PREFIX:
            return None

        from ropewalk_local.model import LocalModel  # noqa: PLC0415 - discovery must stay cheap

        return LocalModel(model_id, **self._settings) if model_id else LocalModel(**self._settings)

    @hookimpl
    def provide_commands(self) -> list[Any]:
        """The command `models`."""
        from ropewalk_local.commands import models  # noqa: PLC0415 - click is needed by the CLI only

        return [models]
