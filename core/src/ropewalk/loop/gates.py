"""Where the gates stand in the loop, and what a refusal turns into.

What passed a gate is remembered as a copy: what a hook changes afterwards is looked at once more by the policies before
it is stored. With nobody who intervenes none of this runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk.kits.calls.copies import plain_copy
from ropewalk.kits.calls.outcomes import ModelOutcome, Retry
from ropewalk.kits.calls.verdicts import Guide, Refuse
from ropewalk.kits.messages.prompt import with_user_blocks
from ropewalk.tools import ToolCall, error_result
from ropewalk.types import ContentBlock, Message, ToolResult

if TYPE_CHECKING:
    from ropewalk.model import ModelRequest
    from ropewalk.run import Run


def denied(refusal: Refuse) -> str:
    """What stands in the place of what was refused."""
    return f"DENIED: {refusal.reason}" if refusal.text is None else refusal.text


async def before_model(run: Run, request: ModelRequest) -> tuple[ModelRequest, ModelOutcome | None]:
    """The request that may be sent, or the outcome instead of it."""
    run.drop_held()
    request, verdict = await run.hooks.intervene("before_model_call", request, run.agent)
    if isinstance(verdict, Guide):
        request = await _guided(run, request, verdict)
        request, verdict = await run.hooks.intervene("before_model_call", request, run.agent, policies_only=True)

    if not isinstance(verdict, Refuse):
        return request, None

    outcome = ModelOutcome.saying(denied(verdict))
    run.passed_message = plain_copy(outcome.message)
    run.outcome = outcome
    return request, outcome


async def _guided(run: Run, request: ModelRequest, guide: Guide) -> ModelRequest:
    """The request with the feedback, which is also kept in the history when it is the conversation's."""
    block: ContentBlock = {"text": guide.feedback}
    if request.purpose == "turn":
        run.history.add_user([block])
        await run.commit()

    return with_user_blocks(request, [block])


async def after_model(run: Run, outcome: ModelOutcome) -> ModelOutcome | Retry:
    """The outcome that may leave the innermost step; what was held back for it is shown or dropped."""
    passed = await _model_gate(run, outcome, last=False)
    run.outcome, run.outcome_gated = (passed, True) if isinstance(passed, ModelOutcome) else (outcome, False)
    return passed


async def last_look_at_model(run: Run, outcome: ModelOutcome) -> ModelOutcome:
    """The outcome that may be stored: asked again when a hook changed what had passed."""
    if outcome.message == run.passed_message:  # not the hook's own object, which it may still write to
        return ModelOutcome(**{**outcome.to_dict(), "message": plain_copy(run.passed_message)})

    passed = await _model_gate(run, outcome, last=True)
    return passed if isinstance(passed, ModelOutcome) else ModelOutcome.withheld(outcome, f"GUIDANCE: {passed.reason}")


async def _model_gate(run: Run, outcome: ModelOutcome, *, last: bool) -> ModelOutcome | Retry:
    passed, verdict = await run.hooks.intervene("after_model_call", outcome, run.agent, policies_only=last)
    if isinstance(verdict, Guide) and outcome.stop_reason != "cancelled":
        return Retry(verdict.feedback, feedback=({"text": verdict.feedback},))

    if isinstance(verdict, Refuse):
        passed = passed.withheld(denied(verdict))

    run.passed_message = plain_copy(passed.message)
    if not last:
        await run.release_held(passed.message, same=passed is outcome)

    return passed


async def last_look_at_message(run: Run, message: Message) -> Message:
    """A message that a hook puts in the model's place. What a pause shows was judged when it was stored."""
    if run.paused is not None and (not message["content"] or message in run.history.messages):
        return message

    return (await last_look_at_model(run, ModelOutcome(message, "end_turn"))).message


async def before_tool(run: Run, call: ToolCall) -> tuple[ToolCall, ToolResult | None]:
    """The call that will run, nobody else's to change any more, or the result instead of it."""
    call = call.private()
    use_id = call.tool_use["toolUseId"]
    call, refusal = await run.hooks.intervene("before_tool_call", call, run.agent)
    if call.tool_use["toolUseId"] != use_id or call.tool is None:
        return call, error_result(
            use_id, "Error: an intervention replaced the call by one of another id or without a tool"
        )

    return call, _passed(run, error_result(use_id, denied(refusal))) if isinstance(refusal, Refuse) else None


async def last_look_at_results(run: Run, results: list[ToolResult]) -> list[ToolResult]:
    """The results that may be stored: asked again where a hook changed what had passed."""
    passed = run.calls.passed
    return [
        plain_copy(passed[use_id])
        if passed.get(use_id := result["toolUseId"]) == result
        else await after_tool(run, result, last=True)
        for result in results
    ]


async def after_tool(run: Run, result: ToolResult, *, last: bool = False) -> ToolResult:
    """The result that may leave the innermost step, or be stored."""
    use_id = result["toolUseId"]
    passed, refusal = await run.hooks.intervene("after_tool_call", result, run.agent, policies_only=last)
    if isinstance(refusal, Refuse):
        passed = error_result(use_id, denied(refusal))
    elif passed is not result:
        passed = {**passed, "toolUseId": use_id}

    run.release_held_of(use_id, show=passed == result)
    return _passed(run, passed)


def _passed(run: Run, result: ToolResult) -> ToolResult:
    run.calls.passed[result["toolUseId"]] = plain_copy(result)
    return result
