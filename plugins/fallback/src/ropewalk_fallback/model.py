"""A model that consists of several."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakKeyDictionary

from ropewalk.errors import MissingPluginError
from ropewalk.kits.aio.streams import opened
from ropewalk.kits.hooks.models import resolve_model
from ropewalk.kits.identity import checked_model
from ropewalk_fallback.kinds import DEFAULT_ON, checked_on, is_among, kind_of
from ropewalk_fallback.run import FallbackRun, attempt_under_way, run_under_way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropewalk import Model, ModelRequest, StreamEvent
    from ropewalk.agent import Agent
    from ropewalk.kits.model_errors import FailureClass

logger = logging.getLogger("ropewalk.fallback")


@final
class FallbackModel:
    """Asks the first model, and when that fails the next one.

    With the plugin (`plugins=["fallback"]`) a run that has switched stays with the model that answers, a failure in the
    middle of an answer switches too, and the result says which model answered. Without it every call stands alone: it
    begins at the first model, and goes on with the next as long as nothing was streamed.

    It holds no state of a run, and may serve many agents at once.

    Args:
        models: Models and model strings, the preferred one first. Strings are looked up when their turn comes, by the
            agent's plugins, so they need the plugin.
        on: The failures after which the next model is tried: error classes, and kinds (`"throttle"`, `"transient"`,
            `"overflow"`, `"auth"`, `"content_filter"`, `"not_found"`, `"bad_request"`). After an overflow only a model
            that is known to have a larger window is tried.
        max_switches: The most switches of one run; None is no bound but the number of models.

    Raises:
        ValueError: There is no model, or one of `on` is no kind of failure.
        TypeError: One of the models is none.
    """

    def __init__(
        self, models: Iterable[Model | str], on: Iterable[Any] = DEFAULT_ON, max_switches: int | None = None
    ) -> None:
        self.models: Final = checked_models(models)
        self.on: Final = checked_on(on)
        if max_switches is not None and (type(max_switches) is not int or max_switches < 0):
            raise ValueError(f"fallback: max_switches={max_switches!r}: give a whole number of at least 0, or None")

        self.max_switches: Final = max_switches
        self._looked_up: WeakKeyDictionary[Agent, dict[str, Model]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        names = (each if isinstance(each, str) else _id_of(each) for each in self.models)
        return f"<FallbackModel: {', '.join(names)}>"

    # -- what a model has ------------------------------------------------------------------------------------------

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Streams the answer of the model whose turn it is."""
        run = attempt_under_way.get()
        if run is not None and run.model is self:
            return self._stream_in(run, request)

        return self._stream_alone(request)

    @property
    def model_id(self) -> str:
        """The id of the model whose turn it is in the run at hand, of the first elsewhere."""
        index, agent = self._place()
        return self.name_of(index, agent)

    @property
    def context_window(self) -> int | None:
        """The window of that model."""
        return self._window(*self._place())

    @property
    def count_tokens(self) -> Callable[[ModelRequest], int]:
        """That model's own count, if it has one."""
        model = self._known(*self._place())
        return model.count_tokens  # type: ignore[union-attr, no-any-return]

    @property
    def supports_output_schema(self) -> bool:
        """Whether every one of the models can be held to a schema."""
        _, agent = self._place()
        known = (self._known(index, agent) for index in range(len(self.models)))
        return all(getattr(model, "supports_output_schema", False) is True for model in known)

    # -- what a run asks -------------------------------------------------------------------------------------------

    def name_of(self, index: int, agent: Agent | None) -> str:
        """The id of one of the models; of one that was not looked up, its string."""
        model = self._known(index, agent)
        return str(self.models[index]) if model is None else _id_of(model)

    def next_after(self, index: int, kind: FailureClass | None, agent: Agent | None) -> int | None:
        """The model to try after a failure, or None."""
        later = range(index + 1, len(self.models))
        if kind != "overflow":
            return next(iter(later), None)

        window = self._window(index, agent)
        if window is None:
            return None

        return next((each for each in later if (self._window(each, agent) or 0) > window), None)

    # -- streaming -------------------------------------------------------------------------------------------------

    async def _stream_in(self, run: FallbackRun, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """One attempt with one model: the plugin turns to the next, and the kernel asks again."""
        try:
            model = self._resolve(run.index, run.agent)
            async with AsyncExitStack() as closing:
                async for event in _opened(model, request, closing):
                    yield event
        except Exception as error:
            run.failed_with(error)
            raise

        run.has_ended()

    async def _stream_alone(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        index: int | None = 0
        switches = 0
        while index is not None:
            streamed = False
            try:
                model = self._resolve(index, None)
                async with AsyncExitStack() as closing:
                    async for event in _opened(model, request, closing):
                        streamed = streamed or "messageStart" not in event  # which says nothing yet
                        yield event
            except Exception as error:
                may_switch = not streamed and switches != self.max_switches and is_among(error, self.on)
                following = self.next_after(index, kind_of(error), None) if may_switch else None
                if following is None:
                    raise

                names = self.name_of(index, None), self.name_of(following, None)
                logger.warning("%s failed (%s): going on with %s", names[0], type(error).__name__, names[1])
                index = following
                switches += 1
            else:
                index = None

    # -- looking models up -----------------------------------------------------------------------------------------

    def _place(self) -> tuple[int, Agent | None]:
        run = run_under_way.get()
        return (run.index, run.agent) if run is not None and run.model is self else (0, None)

    def _resolve(self, index: int, agent: Agent | None) -> Model:
        """One of the models, looked up if it was given by name.

        Raises:
            MissingPluginError: Its provider, or this plugin, is not active.
            UnknownModelError: No provider knows the name.
        """
        given = self.models[index]
        if not isinstance(given, str):
            return given

        if agent is None:
            hint = "add plugins=['fallback'] to the agent, or give models instead of strings"
            raise MissingPluginError(f"FallbackModel([{given!r}])", "ropewalk-fallback", hint=hint)

        with self._lock:
            found = self._looked_up.setdefault(agent, {})

        model = found.get(given)
        return model if model is not None else found.setdefault(given, resolve_model(agent, given))

    def _known(self, index: int, agent: Agent | None) -> Model | None:
        """The same, without failing: who asks for a name or a window gets the error when the model is called."""
        if agent is None and isinstance(self.models[index], str):
            return None

        try:
            return self._resolve(index, agent)
        except Exception:  # noqa: BLE001 - raised again when the model's turn comes
            return None

    def _window(self, index: int, agent: Agent | None) -> int | None:
        window = getattr(self._known(index, agent), "context_window", None)
        return window if isinstance(window, int) else None


def checked_models(models: Iterable[Any]) -> tuple[Model | str, ...]:
    """The models as given.

    Raises:
        ValueError: There are none.
        TypeError: One is neither a string nor a model.
    """
    if isinstance(models, str):
        models = (models,)

    found = tuple(models)
    if not found or None in found:
        raise ValueError(
            "fallback: give at least one model, and no None: FallbackModel(['bedrock:...', 'litellm:...'])"
        )

    for each in found:
        checked_model(each)

    return found


def _opened(model: Model, request: ModelRequest, closing: AsyncExitStack) -> AsyncIterator[StreamEvent]:
    """The stream, which is closed when it is left early."""
    stream = opened(model.stream(request))
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        closing.push_async_callback(aclose)

    return stream


def _id_of(model: Any) -> str:
    """The id under which prices and limits know a model."""
    config: Mapping[str, Any] | Any = getattr(model, "config", None)
    known = getattr(model, "model_id", None) or (config.get("model_id") if isinstance(config, dict) else None)
    return str(known or type(model).__name__)
