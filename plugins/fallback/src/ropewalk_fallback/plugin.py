"""The plugin: goes on with the next model within a run, and tells who answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, final

import pydantic

from ropewalk import Denied, Invocation, ModelOutcome, ModelRequest, Retry, Suspend, current_run, hookimpl
from ropewalk_fallback.kinds import DEFAULT_ON, checked_on
from ropewalk_fallback.model import FallbackModel, checked_models
from ropewalk_fallback.run import FallbackRun, attempt_under_way, run_under_way

if TYPE_CHECKING:
    from ropewalk import AgentResult
    from ropewalk.agent import Agent


@final
class FallbackPlugin:
    """Lets an agent fall back on other models.

    `plugins=[("fallback", {"models": [...]})]` names the models that stand behind the agent's own. An agent whose model
    is a `FallbackModel` needs no options: `plugins=["fallback"]`.
    """

    name = "fallback"
    order = 90  # close to the model: whoever wraps model calls sees each model's attempt, and none of its errors twice

    class Config(pydantic.BaseModel):
        """Options of the plugin; see `FallbackModel`.

        Attributes:
            models: What stands behind the agent's own model.
            on: Kinds of failures, or error classes.
            max_switches: The most switches of one run.
        """

        models: list[Any] = []
        on: list[Any] = list(DEFAULT_ON)
        max_switches: int | None = pydantic.Field(default=None, ge=0, strict=True)

        @pydantic.field_validator("models")
        @classmethod
        def _models(cls, given: list[Any]) -> list[Any]:
            try:
                return list(checked_models(given)) if given else []
            except TypeError as error:
                raise ValueError(str(error)) from error

        @pydantic.field_validator("on")
        @classmethod
        def _on(cls, given: list[Any]) -> list[Any]:
            return list(checked_on(given))

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or self.Config()

    @hookimpl
    async def around_invocation(
        self,
        invocation: Invocation,
        call_next: Callable[[Invocation], Awaitable[AgentResult | Denied]],
        agent: Agent,
    ) -> AgentResult | Denied:
        """Keeps what this run has tried, and leaves it in `result.state["fallback"]`."""
        model = self._model_of(agent)
        if model is None:
            return await call_next(invocation)

        run, state = FallbackRun(agent, model), current_run().state
        if "fallback" in state:  # the run goes on after a pause, or a hook repeats it
            run.take_up(state["fallback"])

        _leave(run)
        token = run_under_way.set(run)
        try:
            return await call_next(invocation)
        finally:
            run_under_way.reset(token)

    @hookimpl
    async def around_model_call(
        self, request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelOutcome | Retry]], agent: Agent
    ) -> ModelOutcome | Retry:
        """Asks for another attempt, with the next model, when this one's failure is such."""
        run = run_under_way.get()
        if run is None or run.agent is not agent or run.model is not agent.current_model:
            return await call_next(request)

        run.begin()
        token = attempt_under_way.set(run)
        try:
            outcome = await call_next(request)
        except Suspend:
            _count(run)  # when the run goes on, the model is not asked again
            raise
        except Exception as error:
            reason = run.switch_after(error)
            if reason is None:
                raise

            _leave(run)
            return Retry(reason)
        finally:
            attempt_under_way.reset(token)

        if isinstance(outcome, ModelOutcome):
            _count(run)

        return outcome

    def _model_of(self, agent: Agent) -> FallbackModel | None:
        """The agent's model if it is made of several; the options make one of it, for this agent alone."""
        config = self._config
        model = agent.current_model
        if config.models and not isinstance(model, FallbackModel):
            model = agent.model = FallbackModel([agent.model, *config.models], config.on, config.max_switches)

        return model if isinstance(model, FallbackModel) else None


def _leave(run: FallbackRun) -> None:
    """Leaves what was tried in the run's state at once: a pause keeps what is there then."""
    current_run().state["fallback"] = run.to_dict()


def _count(run: FallbackRun) -> None:
    run.count_answer()
    _leave(run)
