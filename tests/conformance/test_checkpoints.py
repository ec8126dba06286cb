"""Checkpoints (conformance 120 to 126)."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest

from ropewalk import (
    Agent,
    Checkpoint,
    CheckpointException,
    ResumeError,
    ToolContext,
    ToolsOutcome,
    hookimpl,
    tool,
)
from ropewalk.kits.snapshot import Snapshot
from ropewalk_testing import ScriptedModel, assert_valid_history, use


def payload(result):
    return {"checkpointResume": {"checkpoint": result.checkpoint.to_dict()}}


def place(result):
    return result.checkpoint.position, result.checkpoint.cycle_index


def stepper(ran):
    @tool
    def step(n: int) -> str:
        """Takes a step."""
        ran.append(n)
        return f"step {n}"

    return step


@pytest.fixture
def ran():
    return []


@pytest.fixture
def step(ran):
    return stepper(ran)


TWO_STEPS = [use("step", {"n": 1}, id="A"), use("step", {"n": 2}, id="B"), "end"]


def test_two_tool_turns_pause_four_times(ask, make_agent, step, ran):
    """Conformance 120."""
    agent, model = make_agent(TWO_STEPS, tools=[step], checkpointing=True)

    places, seen = [], []
    result = ask(agent, "go")
    while result.stop_reason == "checkpoint":
        places.append(place(result))
        seen.append((model.calls, list(ran)))
        result = ask(agent, payload(result))

    assert places == [("after_model", 0), ("after_tools", 0), ("after_model", 1), ("after_tools", 1)]
    assert seen == [(1, []), (1, [1]), (2, [1]), (2, [1, 2])]
    assert (result.stop_reason, str(result), result.checkpoint) == ("end_turn", "end\n", None)
    assert_valid_history(agent.messages)


def test_cycles_count_from_zero_with_each_prompt(make_agent, step):
    """Conformance 120."""
    agent, _ = make_agent([*TWO_STEPS, use("step", {"n": 3}), "end"], tools=[step], checkpointing=True)
    result = agent("go")
    while result.stop_reason == "checkpoint":
        result = agent(payload(result))

    assert place(agent("again")) == ("after_model", 0)


def test_an_answer_without_tools_does_not_pause(ask, make_agent, step):
    """Conformance 121."""
    agent, _ = make_agent(["end"], tools=[step], checkpointing=True)
    result = ask(agent, "go")
    assert (result.stop_reason, result.checkpoint, agent.suspension) == ("end_turn", None, None)


@pytest.mark.parametrize("version", ["2.0", "9.0", "", None, 1.0, ["1.0"]])
def test_another_schema_version_is_refused(ask, make_agent, step, ran, version):
    """Conformance 122."""
    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True)
    result = ask(agent, "go")
    other = {**result.checkpoint.to_dict(), "schema_version": version}

    with pytest.raises(CheckpointException, match="schema version"):
        ask(agent, {"checkpointResume": {"checkpoint": other}})
    with pytest.raises(CheckpointException, match="schema version"):
        Checkpoint.from_dict(other)

    assert ran == []
    assert place(ask(agent, payload(result))) == ("after_tools", 0)


def test_an_unknown_key_is_ignored_with_a_warning(make_agent, step, ran, caplog):
    """Conformance 122."""
    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True)
    result = agent("go")
    agent({"checkpointResume": {"checkpoint": {**result.checkpoint.to_dict(), "mood": "good"}}})

    assert ran == [1]
    assert ["'mood'" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("value", [{}, {"checkpoint": None}, None, "after_model", [], {"Checkpoint": {}}], ids=str)
def test_no_checkpoint_is_refused(ask, make_agent, step, ran, value):
    """Conformance 123."""
    agent, model = make_agent(TWO_STEPS, tools=[step], checkpointing=True)
    result = ask(agent, "go")
    before = copy.deepcopy(list(agent.messages))

    with pytest.raises(CheckpointException, match="checkpointResume"):
        ask(agent, {"checkpointResume": value})

    assert (list(agent.messages), ran, model.calls) == (before, [], 1)
    assert place(ask(agent, payload(result))) == ("after_tools", 0)


def test_a_resume_without_checkpointing_is_a_value_error(ask, make_agent, step, ran):
    """Conformance 125."""
    agent, model = make_agent(TWO_STEPS, tools=[step])
    agent.messages[:] = [{"role": "user", "content": [{"text": "go"}]}]
    with pytest.raises(ValueError, match=r"ropewalk-checkpoint.*checkpointing=True"):
        ask(agent, {"checkpointResume": {"checkpoint": Checkpoint("after_model").to_dict()}})

    assert (len(agent.messages), ran, model.calls) == (1, [], 0)


def test_a_resume_in_a_list_is_a_value_error(ask, make_agent, step, ran):
    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True)
    result = ask(agent, "go")
    before = copy.deepcopy(list(agent.messages))
    with pytest.raises(ValueError):
        ask(agent, [payload(result)])

    assert (list(agent.messages), ran) == (before, [])
    assert place(ask(agent, payload(result))) == ("after_tools", 0)


def test_something_beside_the_checkpoint_is_refused(make_agent, step, ran):
    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True)
    result = agent("go")
    with pytest.raises(ResumeError, match="text"):
        agent({**payload(result), "text": "hello"})

    assert ran == []


# -- what beats a checkpoint ---------------------------------------------------------------------------------------


def test_an_interrupt_beats_a_checkpoint(make_agent, step, ran):
    """Conformance 126."""

    @tool(context=True)
    def ask_first(tool_context: ToolContext) -> str:
        """Asks."""
        return tool_context.interrupt("sure")

    both = [use("step", {"n": 1}, id="A"), use("ask_first", {}, id="B")]
    agent, _ = make_agent([both, "end"], tools=[step, ask_first], checkpointing=True)
    asked = agent(payload(agent("go")))
    assert (asked.stop_reason, asked.checkpoint, ran) == ("interrupt", None, [1])

    with pytest.raises(ResumeError):
        agent({"checkpointResume": {"checkpoint": Checkpoint("after_model").to_dict()}})

    answer = [{"interruptResponse": {"interruptId": asked.interrupts[0].id, "response": "yes"}}]
    result = agent(answer)
    assert (place(result), ran) == (("after_tools", 0), [1])
    assert agent(payload(result)).stop_reason == "end_turn"


@pytest.mark.parametrize("where", ["model", "tools"])
def test_a_cancel_beats_a_checkpoint(make_agent, step, where):
    """Conformance 126."""

    class Cancels:
        name = "cancels"

        @hookimpl
        async def around_model_call(self, request, call_next, agent):
            outcome = await call_next(request)
            if where == "model":
                agent.cancel()

            return outcome

        @hookimpl
        async def around_tools(self, batch, call_next, agent):
            outcome = await call_next(batch)
            agent.cancel()
            return outcome

    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True, plugins=[Cancels()])
    result = agent("go")
    if where == "tools":
        result = agent(payload(result))

    assert (result.stop_reason, result.checkpoint, agent.suspension) == ("cancelled", None, None)
    assert_valid_history(agent.messages)


def test_the_end_of_the_turn_beats_a_checkpoint(make_agent, step):
    class Enough:
        name = "enough"

        @hookimpl
        async def around_tools(self, batch, call_next):
            return ToolsOutcome((await call_next(batch)).results, end_turn="enough")

    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True, plugins=[Enough()])
    result = agent(payload(agent("go")))
    assert (result.stop_reason, str(result), agent.suspension) == ("end_turn", "enough\n", None)


# -- going on ------------------------------------------------------------------------------------------------------


def test_none_goes_on_as_well(make_agent, step, ran):
    agent, _ = make_agent(TWO_STEPS, tools=[step], checkpointing=True)
    agent("go")
    assert (place(agent(None)), ran) == (("after_tools", 0), [1])


@pytest.mark.parametrize("resumes", [0, 1])
def test_a_new_prompt_instead_closes_what_is_open(ask, make_agent, step, ran, resumes):
    agent, _ = make_agent([TWO_STEPS[0], "end"], tools=[step], checkpointing=True)
    paused = ask(agent, "go")
    for _ in range(resumes):
        paused = ask(agent, payload(paused))

    result = ask(agent, "something else")

    assert (result.stop_reason, ran, agent.suspension) == ("end_turn", [1] * resumes, None)
    assert_valid_history(agent.messages)
    [answer] = [b["toolResult"] for m in agent.messages for b in m["content"] if "toolResult" in b]
    assert answer["status"] == ("success" if resumes else "error")
    with pytest.raises(CheckpointException, match="no run of this agent waits"):
        ask(agent, payload(paused))


def test_a_checkpoint_is_a_value(make_agent, step):
    checkpoint = Checkpoint("after_tools", 3)
    assert checkpoint.to_dict() == {"position": "after_tools", "cycle_index": 3, "schema_version": "1.0"}
    assert Checkpoint.from_dict(checkpoint.to_dict()) == checkpoint
    with pytest.raises(AttributeError):
        checkpoint.cycle_index = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        Checkpoint("after_tools", 3, "1.0")  # type: ignore[call-arg]


# -- another process --------------------------------------------------------------------------------------------------


def build(ran):
    """An agent whose model looks at the conversation: it is the same in each process."""

    def model(request):
        return TWO_STEPS[sum(message["role"] == "assistant" for message in request.messages)]

    return Agent(ScriptedModel(model), tools=[stepper(ran)], callback_handler=None, checkpointing=True)


def in_a_new_process(text):
    there = subprocess.run(
        [sys.executable, __file__], input=text, capture_output=True, text=True, timeout=120, check=False
    )
    assert there.returncode == 0, there.stderr
    return json.loads(there.stdout)


def state_of(agent, result, ran):
    return {
        "snapshot": agent.take_snapshot(preset="session").to_dict(),
        "prompt": payload(result) if result.checkpoint else None,
        "place": place(result) if result.checkpoint else result.stop_reason,
        "ran": ran,
        "calls": agent.model.calls,
    }


def main():
    """Goes one checkpoint further with what is on standard input."""
    given = json.load(sys.stdin)
    ran: list[int] = []
    agent = build(ran)
    agent.load_snapshot(Snapshot.from_dict(given["snapshot"]))
    result = agent(given["prompt"])
    assert_valid_history(agent.messages, open_tail=True)
    json.dump(state_of(agent, result, ran), sys.stdout)


def test_each_step_may_be_taken_by_another_process():
    ran: list[int] = []
    agent = build(ran)
    state = state_of(agent, agent("go"), ran)
    told = [(state["place"], state["ran"], state["calls"])]
    for _ in range(4):
        state = in_a_new_process(json.dumps(state))
        told.append((state["place"], state["ran"], state["calls"]))

    assert told == [
        (("after_model", 0), [], 1),
        (["after_tools", 0], [1], 0),
        (["after_model", 1], [], 1),
        (["after_tools", 1], [2], 0),
        ("end_turn", [], 1),
    ]


if __name__ == "__main__":
    main()
