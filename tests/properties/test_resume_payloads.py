"""Whatever becomes of a payload on its way: it does what it says, or it is refused and nothing has changed."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from ropewalk import Agent, Checkpoint, InvalidPromptError, ResumeError, tool
from ropewalk.run import current_run
from ropewalk_testing import ScriptedModel, assert_valid_history, use

EXAMPLES = int(os.environ.get("ROPEWALK_EXAMPLES", "150"))
QUICK = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

KEYS = st.sampled_from(
    ["checkpointResume", "checkpoint", "position", "cycle_index", "schema_version", "interruptResponse", "interruptId",
     "response", "text", "Position", "cycleIndex", ""]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["1.0", "2.0", "9.0", "after_model", "after_tools", "before_lunch", "0", "1"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)


# -- mutations -----------------------------------------------------------------------------------------------------


def places(value, path=()):
    """Every place in a JSON value, the value itself first."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]

    return value


def put(value, path, item):
    """The value with something else in a place."""
    if not path:
        return item

    at(value, path[:-1])[path[-1]] = item
    return value


class Mutations:
    """What may happen to a payload. Each takes the payload, a place in it, and draws what else it needs."""

    @staticmethod
    def nothing(payload, path, draw):
        return payload

    @staticmethod
    def replace(payload, path, draw):
        return put(payload, path, draw(VALUES))

    @staticmethod
    def drop(payload, path, draw):
        if path:
            del at(payload, path[:-1])[path[-1]]

        return payload

    @staticmethod
    def rename(payload, path, draw):
        if path and isinstance(path[-1], str):
            parent = at(payload, path[:-1])
            parent[draw(KEYS)] = parent.pop(path[-1])

        return payload

    @staticmethod
    def add(payload, path, draw):
        target = at(payload, path)
        if isinstance(target, dict):
            target[draw(KEYS)] = draw(VALUES)
        elif isinstance(target, list):
            target.insert(draw(st.integers(0, len(target))), draw(VALUES))

        return payload

    @staticmethod
    def wrap(payload, path, draw):
        inner = at(payload, path)
        return put(payload, path, draw(st.sampled_from([[inner], [inner, inner], {"checkpoint": inner}])))

    @staticmethod
    def unwrap(payload, path, draw):
        inner = at(payload, path)
        if isinstance(inner, list | dict) and inner:
            return put(payload, path, next(iter(inner.values() if isinstance(inner, dict) else inner)))

        return payload

    @staticmethod
    def reorder(payload, path, draw):
        target = at(payload, path)
        if isinstance(target, list):
            return put(payload, path, draw(st.permutations(target)))

        return put(payload, path, dict(reversed(target.items()))) if isinstance(target, dict) else payload

    @staticmethod
    def repeat(payload, path, draw):
        target = at(payload, path)
        if isinstance(target, list) and target:
            target.append(copy.deepcopy(draw(st.sampled_from(target))))

        return payload

    @staticmethod
    def nudge(payload, path, draw):
        value = at(payload, path)
        if isinstance(value, str):
            return put(payload, path, draw(st.sampled_from([value[:-1], value + " ", value.upper(), value + "0"])))

        if type(value) is int:
            return put(payload, path, draw(st.sampled_from([value + 1, -value - 1, float(value), str(value)])))

        return payload


MUTATIONS = [each.__func__ for name, each in vars(Mutations).items() if isinstance(each, staticmethod)]


@st.composite
def mutated(draw, payload):
    payload = copy.deepcopy(payload)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(payload))))
        payload = draw(st.sampled_from(MUTATIONS))(payload, path, draw)

    return payload


# -- agents that wait ----------------------------------------------------------------------------------------------


def waiting(*, checkpoint):
    """An agent that waits, its result, and what its tools do."""
    done: list[Any] = []

    @tool
    async def work(of: str) -> str:
        """Works, and asks first when there are no checkpoints."""
        answer = None if checkpoint else current_run().interrupt("sure", of=of)
        done.append((of, answer))
        return of

    uses = [use("work", {"of": each}, id=each) for each in ("a", "b", "c")]
    agent = Agent(
        ScriptedModel([uses, "end"]),
        tools=[work],
        callback_handler=None,
        checkpointing=checkpoint,
    )
    return agent, agent("go"), done


def told(agent, done):
    """All that a refusal must not change."""
    return copy.deepcopy(list(agent.messages)), agent.suspension, agent.model.calls, list(done)


def called(agent, prompt):
    """The result, or None when the prompt is refused: as a resume when it is meant as one."""
    try:
        return agent(prompt)
    except ResumeError as error:
        event(f"refused: {type(error).__name__}")
        return None
    except InvalidPromptError:
        event("no prompt")
        assert begins_anew(prompt)
        return None


# -- checkpoints ---------------------------------------------------------------------------------------------------

CHECKPOINT = {"checkpointResume": {"checkpoint": Checkpoint("after_model").to_dict()}}


def is_the_checkpoint(prompt):
    """Whether the payload says what it has to say; unknown keys beside that are allowed inside."""
    if not isinstance(prompt, dict) or set(prompt) != {"checkpointResume"}:
        return False

    payload = prompt["checkpointResume"]
    found = payload.get("checkpoint") if isinstance(payload, dict) else None
    if not isinstance(found, dict):
        return False

    cycle = found.get("cycle_index")
    return (
        found.get("schema_version") == "1.0"
        and found.get("position") == "after_model"
        and type(cycle) is int
        and cycle == 0
    )


def begins_anew(prompt):
    """Whether the prompt is none of a resume: it may be anything that an agent can be called with."""
    blocks = prompt if isinstance(prompt, list) else [prompt]
    return not any(isinstance(block, dict) and "checkpointResume" in block for block in blocks)


@QUICK
@given(prompt=mutated(CHECKPOINT))
@example(prompt="something else")
@example(prompt=[{"text": "something else"}])
def test_a_mutated_checkpoint_goes_on_or_is_refused(prompt):
    agent, result, done = waiting(checkpoint=True)
    assert result.checkpoint.to_dict() == CHECKPOINT["checkpointResume"]["checkpoint"]
    before = told(agent, done)

    after = called(agent, prompt)
    if after is None:
        assert not is_the_checkpoint(prompt)
        assert told(agent, done) == before
        after = agent(CHECKPOINT)  # it still waits, and goes on
        assert sorted(done) == [("a", None), ("b", None), ("c", None)]
    elif is_the_checkpoint(prompt) or prompt is None:
        event("accepted")
        assert after.checkpoint == Checkpoint("after_tools")
        assert sorted(done) == [("a", None), ("b", None), ("c", None)]
        assert called(agent, prompt) is None or prompt is None
    else:
        event("a new prompt")
        assert begins_anew(prompt)
        assert done == []

    assert_valid_history(agent.messages)
    assert len(done) <= 3


def test_a_checkpoint_is_refused_where_there_are_none_and_the_questions_stand():
    agent, result, done = waiting(checkpoint=False)
    before = told(agent, done)

    with pytest.raises(ResumeError):
        agent(CHECKPOINT)

    assert told(agent, done) == before
    answers = [{"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in result.interrupts]
    assert agent(answers).stop_reason == "end_turn"
    assert sorted(done) == [("a", "yes"), ("b", "yes"), ("c", "yes")]


# -- answers -------------------------------------------------------------------------------------------------------


def answers_in(prompt, known):
    """The answers of a payload by id; None when it is none."""
    if not isinstance(prompt, list):
        return None

    answers = {}
    for block in prompt:
        answer = block.get("interruptResponse") if isinstance(block, dict) and len(block) == 1 else None
        if not isinstance(answer, dict) or set(answer) != {"interruptId", "response"}:
            return None

        number = answer["interruptId"]
        if not isinstance(number, str) or number not in known or number in answers:
            return None

        answers[number] = answer["response"]

    return answers


@QUICK
@given(data=st.data())
def test_mutated_answers_reach_their_tools_or_are_refused(data):
    agent, result, done = waiting(checkpoint=False)
    known = {each.id: of for each, of in zip(result.interrupts, ("a", "b", "c"), strict=True)}
    valid = [
        {"interruptResponse": {"interruptId": number, "response": answer}}
        for number, answer in zip(known, data.draw(st.lists(SCALARS, min_size=3, max_size=3)), strict=True)
    ]
    valid = valid[: data.draw(st.integers(1, 3))]
    prompt = data.draw(mutated(valid))
    before = told(agent, done)
    answers = answers_in(prompt, known)

    after = called(agent, prompt)
    if after is None:
        assert answers is None
        assert told(agent, done) == before
    else:
        event("accepted")
        assert answers is not None
        assert sorted(of for of, _ in done) == sorted(known[number] for number in answers)
        assert dict(done) == {known[number]: answer for number, answer in answers.items()}
        still = [known[each.id] for each in after.interrupts or ()]
        assert sorted([*still, *(of for of, _ in done)]) == ["a", "b", "c"]
        assert (after.stop_reason == "interrupt") == bool(still)

    rest = [
        {"interruptResponse": {"interruptId": each.id, "response": 0}} for each in (after or result).interrupts or ()
    ]
    if rest:
        assert agent(rest).stop_reason == "end_turn"

    assert sorted(of for of, _ in done) == ["a", "b", "c"]
    assert agent.model.calls == 2
    assert_valid_history(agent.messages)
