"""One round of questions: what all handlers say at one moment, and the one verdict that comes of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ropewalk import ModelOutcome, ModelRequest
from ropewalk.kits.calls.verdicts import Guide as Feedback
from ropewalk.kits.calls.verdicts import Moment, Refuse, Replace, Verdict
from ropewalk.kits.messages.prompt import prompt_messages
from ropewalk.kits.messages.rules import checked_message
from ropewalk_interventions import approvals, events, guidance
from ropewalk_interventions.actions import Action, Confirm, Deny, Guide, Proceed, Transform, default_evaluate
from ropewalk_interventions.asking import Failed, action_of, guarded, is_being_asked
from ropewalk_interventions.errors import InterventionError

if TYPE_CHECKING:
    from ropewalk.agent import Agent
    from ropewalk.types import ContentBlock
    from ropewalk_interventions.handler import InterventionHandler

logger = logging.getLogger("ropewalk.interventions")

CANCELLED: Final = "Tool execution cancelled"
_EFFECTIVE: Final[dict[Moment, tuple[type, ...]]] = {
    "before_invocation": (Deny, Guide, Transform),
    "before_model_call": (Deny, Guide, Transform),
    "after_model_call": (Guide, Transform),
    "before_tool_call": (Deny, Guide, Confirm, Transform),
    "after_tool_call": (Transform,),
}
_DEFAULTS: Final[dict[Moment, str]] = {
    "before_invocation": "invocation denied by hook",
    "before_model_call": "model call denied by hook",
    "before_tool_call": "tool cancelled by user",
}


class Round:
    """Asks the handlers of one moment about one subject.

    Attributes:
        subject: What passes, as handlers have changed it so far.
    """

    __slots__ = ("_agent", "_approved", "_guides", "_max_guidance", "_moment", "_running", "subject")

    def __init__(
        self, moment: Moment, subject: Any, agent: Agent, running: events.Running | None, max_guidance: int
    ) -> None:
        self.subject = subject
        self._moment = moment
        self._agent = agent
        self._running = running
        self._max_guidance = max_guidance
        self._guides: list[str] = []
        self._approved: list[tuple[InterventionHandler, str]] = []

    async def verdict(self, handlers: tuple[InterventionHandler, ...]) -> Verdict | None:
        """What all of them come to.

        Raises:
            Suspend: A handler wants a confirmation that nobody has given yet.
            InterventionError: A handler broke a rule.
            Exception: What a handler with `on_error="throw"` raised.
        """
        given = self.subject
        for handler in handlers:
            if self._moment.endswith("model_call") and is_being_asked(handler, self._agent):
                continue

            refusal = await self._heard(handler)
            if refusal is not None:
                return refusal

        refusal = await self._approved_anew()
        if refusal is not None:
            return refusal

        if self._guides:
            return await self._guided(changed=self.subject is not given)

        return None if self.subject is given else Replace(self.subject)

    # -- one handler -----------------------------------------------------------------------------------------------

    async def _heard(self, handler: InterventionHandler) -> Refuse | None:
        """Asks one handler and does what it says; a refusal ends the round."""
        action = await action_of(handler, self._moment, self._event(handler), self._agent)
        return await self._done(handler, action)

    async def _done(  # noqa: PLR0911 - one line per action
        self, handler: InterventionHandler, action: Action | Failed
    ) -> Refuse | None:
        if isinstance(action, Failed):
            return _refused(action)

        if not isinstance(action, (Proceed, *_EFFECTIVE[self._moment])):
            self._warn(handler, action)
            return None

        match action:
            case Deny():
                return Refuse(action.reason)
            case Guide():
                self._guides.append(f"[{handler.name}] {action.feedback}")
                return None
            case Confirm():
                return await self._confirmed(handler, action)
            case Transform():
                return self._against_an_answer(handler) or await self._transformed(handler, action)
            case Proceed():
                return self._against_an_answer(handler)

    def _warn(self, handler: InterventionHandler, action: Action) -> None:
        effective = ", ".join(each.__name__ for each in _EFFECTIVE[self._moment])
        logger.warning(
            "the intervention handler %r answered %s at %s, where it has no effect: use %s",
            handler.name, type(action).__name__, self._moment, effective,
        )  # fmt: skip

    def _event(self, handler: InterventionHandler) -> Any:
        """An event of the handler's own: what it writes there shows nowhere."""
        subject, agent = self.subject, self._agent
        match self._moment:
            case "before_invocation":
                return events.before_invocation(subject, agent)
            case "before_model_call":
                return events.before_model_call(subject, agent)
            case "after_model_call":
                return events.after_model_call(subject, agent)
            case "before_tool_call":
                return events.before_tool_call(subject, agent, handler.name)
            case "after_tool_call":
                if self._running is None:
                    raise InterventionError("a tool's result came without its call: let around_tool_call run")

                return events.after_tool_call(subject, agent, self._running)

    # -- Confirm ---------------------------------------------------------------------------------------------------

    async def _confirmed(self, handler: InterventionHandler, confirm: Confirm) -> Refuse | None:
        call = self.subject
        seal = approvals.seal_of(call)
        response = confirm.response
        if response is None:
            if self._guides:  # the call will not run: nobody is asked about it
                return None

            if call.cancel_signal.is_set():
                return Refuse(CANCELLED, CANCELLED)

            response = approvals.answer_to(call, handler.name, confirm.prompt, seal)

        approved = await guarded(handler, "evaluate", confirm.evaluate, response)
        if isinstance(approved, Failed):
            return _refused(approved)

        if not approved:
            return _not_approved(confirm.prompt)

        self._approved.append((handler, seal))
        return None

    def _against_an_answer(self, handler: InterventionHandler) -> Refuse | None:
        """A handler that asked before the pause and now would not ask: the answer that was given holds."""
        if self._moment != "before_tool_call":
            return None

        call = self.subject
        number = approvals.question_of(call, handler.name, approvals.seal_of(call))
        if number not in call.answers or default_evaluate(call.answers[number]):
            return None

        return _not_approved(f"the question of {handler.name} was not answered with yes")

    async def _approved_anew(self) -> Refuse | None:
        """Asks again those who agreed to a call that a later handler has changed."""
        if not self._approved:
            return None

        final = approvals.seal_of(self.subject)
        for handler, seal in tuple(self._approved):
            if seal == final:
                continue

            action = await action_of(handler, self._moment, self._event(handler), self._agent)
            if isinstance(action, Transform):
                return Refuse(f"the call was changed after {handler.name!r} had agreed to it, and is changed again")

            refusal = await self._done(handler, action)
            if refusal is not None:
                return refusal

        return None

    # -- Transform -------------------------------------------------------------------------------------------------

    async def _transformed(self, handler: InterventionHandler, transform: Transform) -> Refuse | None:
        event = self._event(handler)
        failed = await guarded(handler, "apply", transform.apply, event)
        if isinstance(failed, Failed):
            return _refused(failed)

        cancelled = getattr(event, "cancel", False) or getattr(event, "cancel_tool", False)
        if cancelled:
            text = cancelled if isinstance(cancelled, str) else _DEFAULTS[self._moment]
            return Refuse(text, text)

        try:
            changed = self._as_left(handler, event)
        except (TypeError, KeyError, AttributeError) as error:
            raise InterventionError(
                f"the Transform of the intervention handler {handler.name!r} left an event at {self._moment} that has "
                f"no longer its form ({type(error).__name__}: {error}): write values of the kind that was there"
            ) from error

        if changed is not None:
            self.subject = changed

        return None

    def _as_left(self, handler: InterventionHandler, event: Any) -> Any:
        """The subject of an event that was written to; None when nothing has changed."""
        subject, where = self.subject, f"what the intervention handler {handler.name!r} left"
        match self._moment:
            case "before_invocation":
                same = event.messages == list(subject.messages)
                return None if same else subject.with_messages(list(prompt_messages(event.messages)))
            case "before_model_call":
                messages = [checked_message(each, where) for each in event.messages]
                same = messages == list(subject.messages)
                return None if same else events.changed_request(subject, messages)
            case "after_model_call":
                if event.retry:
                    self._guides.append(f"[{handler.name}] Answer again.")

                message = checked_message(event.stop_response.message, where)
                return None if message == subject.message else events.changed_answer(subject, message)
            case "before_tool_call":
                changed = events.changed_call(subject, event.tool_use, event.selected_tool, self._agent)
                return None if changed is subject else changed
            case "after_tool_call":
                return None if event.result == subject else {**event.result}

    # -- Guide -----------------------------------------------------------------------------------------------------

    async def _guided(self, *, changed: bool) -> Verdict | None:
        """What the guidance of all handlers comes to."""
        subject, text = self.subject, "\n".join(self._guides)
        if not self._moment.endswith("model_call"):
            return Refuse(text, f"GUIDANCE: {text}")

        if isinstance(subject, ModelOutcome) and subject.stop_reason == "cancelled":
            return Replace(subject) if changed else None

        if isinstance(subject, ModelRequest):
            block: ContentBlock = {"text": text}
            if subject.messages and block in subject.messages[-1]["content"]:
                return Replace(subject) if changed else None  # said already, at an earlier attempt

            guidance.count(self._max_guidance, text)
            return await guidance.added(subject, block) if changed else Feedback(text)

        guidance.count(self._max_guidance, text)
        return Feedback(text)


def _refused(failed: Failed) -> Refuse | None:
    return Refuse(failed.reason) if failed.denies else None


def _not_approved(prompt: str) -> Refuse:
    text = f"CONFIRMATION_FAILED: {prompt}"
    return Refuse(text, text)
