"""A run that pauses goes on where it was: in the same agent, or in another one that is made from JSON."""

from __future__ import annotations

import asyncio
import json

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, parallel, problems, results_of, statuses_of, use

from ropewalk import Agent, Denied, current_run
from ropewalk.kits.snapshot import Snapshot
from ropewalk.kits.suspension import (
    CheckpointException,
    NothingToResumeError,
    ResumeError,
    ResumeTypeError,
    ResumeValueError,
    Suspension,
    UnknownInterruptError,
)


def answer(*pairs):
    return [{"interruptResponse": {"interruptId": number, "response": value}} for number, value in pairs]


def same(agent, **_):
    return agent


def from_json(agent, **options):
    """Another agent of the same parts, with what a snapshot of the first one says."""
    saved = json.loads(json.dumps(agent.take_snapshot(preset="session").to_dict()))
    other = Agent(**options)
    other.load_snapshot(Snapshot.from_dict(saved))
    return other


@pytest.fixture(params=[same, from_json], ids=lambda way: way.__name__)
def go_on(request):
    """The agent that goes on: the one that paused, or one made anew."""
    return request.param


async def asks(call):
    return f"got {call.interrupt('ok?', {'x': 1})}"


async def plain(call):
    return "plain"


# -- where a run may pause ---------------------------------------------------------------------------------------


async def _before_invocation(self, invocation, call_next):
    current_run().interrupt("here")
    return await call_next(invocation)


async def _after_invocation(self, invocation, call_next):
    result = await call_next(invocation)
    current_run().interrupt("here")
    return result


async def _before_model(self, request, call_next):
    current_run().interrupt("here")
    return await call_next(request)


async def _after_model(self, request, call_next):
    outcome = await call_next(request)
    current_run().interrupt("here")
    return outcome


async def _before_tools(self, batch, call_next):
    batch.interrupt("here")
    return await call_next(batch)


async def _after_tools(self, batch, call_next):
    outcome = await call_next(batch)
    batch.interrupt("here")
    return outcome


async def _before_tool(self, call, call_next):
    call.interrupt("here")
    return await call_next(call)


async def _after_tool(self, call, call_next):
    result = await call_next(call)
    call.interrupt("here")
    return result


async def _manage(self, request, reason):
    if reason == "after_tools":
        current_run().interrupt("here")


async def _manage_at_the_end(self, request, reason):
    if reason == "after_invocation":
        current_run().interrupt("here")


async def _stop(self, cycle):
    if cycle.index == 1:
        current_run().interrupt("here")


async def _continue(self, message):
    current_run().interrupt("here")


async def _gate_in(self, moment, subject):
    if moment == "before_tool_call":
        current_run().interrupt("here")


async def _gate_out(self, moment, subject):
    if moment in ("after_tool_call", "after_model_call"):
        current_run().interrupt("here")


PLACES = {
    "before_invocation": {"around_invocation": _before_invocation},
    "after_invocation": {"around_invocation": _after_invocation},
    "before_model": {"around_model_call": _before_model},
    "after_model": {"around_model_call": _after_model},
    "before_tools": {"around_tools": _before_tools},
    "after_tools": {"around_tools": _after_tools},
    "before_tool": {"around_tool_call": _before_tool},
    "after_tool": {"around_tool_call": _after_tool},
    "manage_context": {"manage_context": _manage},
    "manage_context_at_the_end": {"manage_context": _manage_at_the_end},
    "decide_stop": {"decide_stop": _stop},
    "decide_continue": {"decide_continue": _continue},
    "input_gate": {"intervene": _gate_in},
    "output_gate": {"intervene": _gate_out},
}


@pytest.mark.parametrize("place", PLACES)
def test_a_run_pauses_in_any_hook_and_no_effect_is_repeated(place, go_on):
    tool, model = FakeTool("t", plain), FakeModel(use("t", tool_use_id="T"), "done")
    options = {"model": model, "tools": [tool], "plugins": [make_plugin("asker", **PLACES[place])]}
    agent = Agent(**options)

    result, pauses = agent("go"), 0
    while result.stop_reason == "interrupt":
        pauses += 1
        assert pauses < 10
        assert problems(agent.messages, open_tail=True) == []
        (question,) = result.interrupts
        agent = go_on(agent, **options)
        result = agent(answer((question.id, "yes")))

    assert pauses >= 1
    assert (result.stop_reason, str(result)) == ("end_turn", "done\n")
    assert (model.calls, tool.calls) == (2, 1)
    assert problems(agent.messages) == []
    assert [m["role"] for m in agent.messages] == ["user", "assistant", "user", "assistant"]
    assert results_of(agent.messages) == {"T": "plain"}
    assert agent.suspension is None


async def _around_all(self, invocation, call_next):
    current_run().interrupt("before?")
    result = await call_next(invocation)
    current_run().interrupt("after?")
    return result


@pytest.mark.parametrize("asks_tool", [False, True])
def test_a_hook_that_asks_on_the_way_in_and_out_keeps_what_was_done(asks_tool, go_on):
    tools = [FakeTool("a", plain), FakeTool("b", asks if asks_tool else plain)]
    model = FakeModel([use("a", tool_use_id="A"), use("b", tool_use_id="B")], "done")
    options = {"model": model, "tools": tools, "plugins": [parallel(), make_plugin("p", around_invocation=_around_all)]}
    agent = Agent(**options)

    result = agent("go")
    for _ in range(10):
        if result.stop_reason != "interrupt":
            break

        agent = go_on(agent, **options)
        result = agent(answer(*((question.id, 1) for question in result.interrupts)))

    assert (str(result), model.calls, tools[0].calls) == ("done\n", 2, 1)
    assert results_of(agent.messages) == {"A": "plain", "B": "got 1" if asks_tool else "plain"}
    assert problems(agent.messages) == []


def test_answers_may_come_one_by_one_and_finished_calls_are_not_run_again(go_on, ask):
    tools = [FakeTool("a", asks), FakeTool("b", asks), FakeTool("c", plain)]
    model = FakeModel([use("a", tool_use_id="A"), use("b", tool_use_id="B"), use("c", tool_use_id="C")], "done")
    options = {"model": model, "tools": tools, "plugins": [parallel()]}
    agent = Agent(**options)

    first = ask(agent, "go")
    assert [each.id.split(":")[2] for each in first.interrupts] == ["A", "B"]
    agent = go_on(agent, **options)
    second = ask(agent, answer((first.interrupts[1].id, False)))
    assert [each.id for each in second.interrupts] == [first.interrupts[0].id]
    agent = go_on(agent, **options)
    last = ask(agent, answer((first.interrupts[0].id, None)))

    assert last.stop_reason == "end_turn"
    assert results_of(agent.messages) == {"A": "got None", "B": "got False", "C": "plain"}
    assert [tool.calls for tool in tools] == [3, 2, 1]
    assert model.calls == 2


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"a": [1]}, "text"])
def test_any_json_value_is_an_answer(value):
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", asks)])
    (question,) = agent("go").interrupts

    assert agent(answer((question.id, value))).stop_reason == "end_turn"
    assert list(results_of(agent.messages).values()) == [f"got {value}"]


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ("text", ResumeTypeError),
        (None, ResumeTypeError),
        ([{"text": "x"}], ResumeTypeError),
        ([{"interruptResponse": 3}], ResumeTypeError),
        ([{"interruptResponse": {"interruptId": 3, "response": 1}}], ResumeTypeError),
        ([{"interruptResponse": {"interruptId": "ID"}}], ResumeValueError),
        ([{"interruptResponse": {"interruptId": "ID", "response": 1, "more": 2}}], ResumeValueError),
        (answer(("ID", 1), ("ID", 2)), ResumeValueError),
        (answer(("other", 1)), UnknownInterruptError),
        (answer(("ID", 1), ("other", 1)), UnknownInterruptError),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused_and_changes_nothing(prompt, error):
    tool = FakeTool("t", asks)
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[tool])
    (question,) = agent("go").interrupts
    before, pause = list(agent.messages), agent.suspension
    prompt = json.loads(json.dumps(prompt).replace('"ID"', json.dumps(question.id)))

    with pytest.raises(error):
        agent(prompt)

    assert (agent.messages, agent.suspension, tool.calls) == (before, pause, 1)
    assert agent(answer((question.id, 1))).stop_reason == "end_turn"


def test_the_refusals_are_of_one_family_and_of_the_kinds_that_callers_know():
    kinds = [(ResumeTypeError, TypeError), (ResumeValueError, ValueError), (UnknownInterruptError, KeyError)]
    assert all(issubclass(error, ResumeError) and issubclass(error, kind) for error, kind in kinds)
    assert str(UnknownInterruptError("a\nb")) == "a\nb"


def test_an_answered_question_is_not_taken_twice():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", asks)])
    (question,) = agent("go").interrupts
    agent(answer((question.id, 1)))

    with pytest.raises(NothingToResumeError, match="answered before"):
        agent(answer((question.id, 1)))


def without_tool(agent):
    agent.tool_registry.remove("t")


def with_other_history(agent):
    agent.messages.append({"role": "user", "content": [{"text": "x"}]})


def with_shorter_history(agent):
    del agent.messages[:]


@pytest.mark.parametrize("change", [without_tool, with_other_history, with_shorter_history])
def test_an_agent_that_has_changed_does_not_go_on(change):
    tool = FakeTool("t", asks)
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[tool])
    (question,) = agent("go").interrupts
    change(agent)
    before = list(agent.messages)

    with pytest.raises(ResumeError, match="the run cannot go on"):
        agent(answer((question.id, 1)))

    assert (agent.messages, tool.calls) == (before, 1)


def test_a_plugin_that_took_part_must_be_there():
    async def around(self, call, call_next):
        return await call_next(call)

    options = {"model": FakeModel(use("t"), "done"), "tools": [FakeTool("t", asks)]}
    agent = Agent(**options, plugins=[make_plugin("guard", around_tool_call=around)])
    (question,) = agent("go").interrupts
    other = from_json(agent, **options)

    with pytest.raises(ResumeError, match="plugin 'guard' took part"):
        other(answer((question.id, 1)))


def test_a_pause_that_was_changed_is_refused_when_it_is_loaded():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", asks)])
    agent("go")
    saved = agent.take_snapshot(preset="session").to_dict()
    saved["data"]["suspension"]["cycle"] = 7

    with pytest.raises(ResumeError, match="was changed"):
        Agent(model=FakeModel()).load_snapshot(Snapshot.from_dict(saved))

    saved["data"]["suspension"]["version"] = 99
    with pytest.raises(ResumeError, match="version 99"):
        Suspension.from_dict(saved["data"]["suspension"])


# -- resumes that do not get far ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["denied", "raised", "cancelled"])
def test_a_resume_that_is_stopped_before_it_begins_leaves_the_pause(fault):
    state = {"on": False}

    async def around(self, invocation, call_next, agent):
        if state["on"] and fault == "denied":
            return Denied("no")

        if state["on"]:
            raise ValueError("guard")

        return await call_next(invocation)

    tool = FakeTool("t", asks)
    agent = Agent(
        model=FakeModel(use("t"), "done"), tools=[tool], plugins=[make_plugin("guard", around_invocation=around)]
    )
    (question,) = agent("go").interrupts
    state["on"] = fault != "cancelled"
    if fault == "raised":
        with pytest.raises(ValueError, match="guard"):
            agent(answer((question.id, 1)))
    elif fault == "denied":
        assert str(agent(answer((question.id, 1)))) == "no\n"

    state["on"] = False
    assert agent.suspension is not None
    assert agent(answer((question.id, 1))).stop_reason == "end_turn"
    assert results_of(agent.messages) == {"T1-0": "got 1"}


def test_an_error_after_the_pause_was_taken_up_keeps_what_had_finished():
    state = {"on": False}

    async def around(self, batch, call_next):
        if state["on"]:
            raise ValueError("guard")

        return await call_next(batch)

    tools = [FakeTool("a", asks), FakeTool("b", plain)]
    agent = Agent(
        model=FakeModel([use("a", tool_use_id="A"), use("b", tool_use_id="B")]),
        tools=tools,
        plugins=[parallel(), make_plugin("guard", around_tools=around)],
    )
    (question,) = agent("go").interrupts
    state["on"] = True
    with pytest.raises(ValueError, match="guard"):
        agent(answer((question.id, 1)))

    assert problems(agent.messages) == []
    assert results_of(agent.messages)["B"] == "plain"
    assert statuses_of(agent.messages)["A"] == "error"
    assert agent.suspension is None


def test_a_direct_call_cannot_ask_and_waits_for_the_pause():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", asks)])
    with pytest.raises(RuntimeError, match="nobody can answer in a direct call"):
        agent.tool.t()

    agent("go")
    with pytest.raises(RuntimeError, match="cannot directly call tool during interrupt"):
        agent.tool.t()


# -- checkpoints -------------------------------------------------------------------------------------------------


def checkpoints():
    async def emit_checkpoint(self, position, cycle_index):
        return {"position": position, "cycle_index": cycle_index}

    async def resume_run(self, payload, pause):
        return True if pause is not None and payload == pause.checkpoint else None

    return make_plugin("checkpoints", emit_checkpoint=emit_checkpoint, resume_run=resume_run)


def test_a_run_pauses_before_and_after_the_tools_of_each_cycle(go_on, ask):
    tool = FakeTool("t", plain)
    model = FakeModel(use("t"), use("t"), "done")
    options = {"model": model, "tools": [tool], "plugins": [checkpoints()]}
    agent = Agent(**options)
    seen, result = [], ask(agent, "go")
    while result.stop_reason == "checkpoint":
        seen.append((result.checkpoint["position"], result.checkpoint["cycle_index"], model.calls, tool.calls))
        agent = go_on(agent, **options)
        result = ask(agent, {"checkpointResume": result.checkpoint})

    assert seen == [
        ("after_model", 0, 1, 0),
        ("after_tools", 0, 1, 1),
        ("after_model", 1, 2, 1),
        ("after_tools", 1, 2, 2),
    ]
    assert (result.stop_reason, model.calls, tool.calls) == ("end_turn", 3, 2)
    assert problems(agent.messages) == []


def test_a_new_prompt_closes_what_a_checkpoint_had_left_open(go_on):
    tool = FakeTool("t", plain)
    options = {"model": FakeModel(use("t"), "fresh"), "tools": [tool], "plugins": [checkpoints()]}
    agent = Agent(**options)
    agent("go")
    agent = go_on(agent, **options)

    assert str(agent("something else")) == "fresh\n"
    assert tool.calls == 0
    assert problems(agent.messages) == []
    assert agent.suspension is None


def test_no_prompt_goes_on_from_a_checkpoint():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", plain)], plugins=[checkpoints()])
    agent("go")

    assert agent(None).stop_reason == "checkpoint"
    assert agent(None).stop_reason == "end_turn"


def test_a_checkpoint_of_an_edited_history_is_refused():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", plain)], plugins=[checkpoints()])
    checkpoint = agent("go").checkpoint
    agent.messages[0] = {"role": "user", "content": [{"text": "other"}]}

    with pytest.raises(CheckpointException, match="history"):
        agent({"checkpointResume": checkpoint})


# -- once --------------------------------------------------------------------------------------------------------


def test_a_hooks_side_effect_happens_once_also_when_the_hook_is_run_again(go_on):
    sent = []

    async def around(self, call, call_next):
        number = await current_run().once("mail", lambda: sent.append("mail") or len(sent))
        return await call_next(call.with_input({"number": number}))

    async def body(call):
        return f"{call.tool_use['input']['number']} {call.interrupt('ok?')}"

    options = {
        "model": FakeModel(use("t", tool_use_id="T"), "done"),
        "tools": [FakeTool("t", body)],
        "plugins": [make_plugin("mailer", around_tool_call=around)],
    }
    agent = Agent(**options)
    (question,) = agent("go").interrupts
    agent = go_on(agent, **options)
    agent(answer((question.id, "yes")))

    assert sent == ["mail"]
    assert results_of(agent.messages) == {"T": "1 yes"}


async def test_a_side_effect_that_hooks_of_calls_at_once_ask_for_happens_once():
    sent, got = [], []

    async def mail():
        sent.append("mail")
        await asyncio.sleep(0)
        return len(sent)

    async def around(self, call, call_next):
        got.append(await current_run().once("mail", mail))
        return await call_next(call)

    agent = Agent(
        model=FakeModel([use("t"), use("t"), use("t")], "done"),
        tools=[FakeTool("t", plain)],
        plugins=[parallel(), make_plugin("mailer", around_tool_call=around)],
    )
    await agent.invoke_async("go")

    assert sent == ["mail"]
    assert got == [1, 1, 1]


async def test_a_side_effect_that_failed_is_tried_again_by_whoever_waited_for_it():
    tried = []

    async def mail():
        tried.append("mail")
        await asyncio.sleep(0)
        if len(tried) == 1:
            raise OSError("no line")

        return "sent"

    async def ask(run):
        try:
            return await run.once("mail", mail)
        except OSError as error:
            return str(error)

    async def around(self, invocation, call_next):
        run = current_run()
        got.append(await asyncio.gather(*(ask(run) for _ in range(3))))
        return await call_next(invocation)

    got = []
    await Agent(model=FakeModel("x"), plugins=[make_plugin("mailer", around_invocation=around)]).invoke_async("go")

    assert got == [["no line", "sent", "sent"]]
    assert len(tried) == 2


def test_two_places_that_ask_under_one_name_are_an_error():
    async def asks_in_the_name_of_another(call):
        current_run().interrupt("ok?", where="tool_call", of="A")

    agent = Agent(
        model=FakeModel([use("a", tool_use_id="A"), use("b", tool_use_id="B")]),
        tools=[FakeTool("a", asks), FakeTool("b", asks_in_the_name_of_another)],
        plugins=[parallel()],
    )
    with pytest.raises(ValueError, match="asked twice"):
        agent("go")

    assert problems(agent.messages) == []


def test_nothing_runs_outside_a_run():
    with pytest.raises(RuntimeError, match="no agent runs here"):
        current_run()


# -- what a pause keeps when more is asked -----------------------------------------------------------------------


def test_state_and_effects_that_were_left_between_two_questions_of_one_pause_are_kept(go_on):
    async def around(self, invocation, call_next):
        run = current_run()
        result = await call_next(invocation)
        if result.stop_reason == "interrupt":
            run.state["seen"] = run.state.get("seen", 0) + 1
            await run.once("told", lambda: "told")
            run.interrupt("and this?")

        return result

    options = {
        "model": FakeModel(use("t"), "done"), "tools": [FakeTool("t", asks)],
        "plugins": [make_plugin("around", around_invocation=around)],
    }  # fmt: skip
    agent = Agent(**options)
    result = agent("go")

    assert [question.name for question in result.interrupts] == ["ok?", "and this?"]
    assert (agent.suspension.state, agent.suspension.once) == ({"seen": 1}, {"told": "told"})
    agent = go_on(agent, **options)
    result = agent(answer(*((question.id, 1) for question in result.interrupts)))
    assert (result.stop_reason, result.state) == ("end_turn", {"seen": 1})


def test_a_hook_that_calls_on_again_instead_of_waiting_closes_what_is_open():
    async def around(self, invocation, call_next):
        result = await call_next(invocation)
        return await call_next(invocation) if result.stop_reason == "interrupt" else result

    agent = Agent(
        model=FakeModel(use("t", tool_use_id="A"), "done"), tools=[FakeTool("t", asks)],
        plugins=[make_plugin("around", around_invocation=around)],
    )  # fmt: skip
    result = agent("go")

    assert (result.stop_reason, result.interrupts, agent.suspension) == ("end_turn", None, None)
    assert statuses_of(agent.messages) == {"A": "error"}
    assert problems(agent.messages) == []


@pytest.mark.parametrize("name", [None, "", 3])
def test_a_question_needs_a_name(name):
    agent = Agent(model=FakeModel(use("t")), tools=[FakeTool("t", lambda call: call.interrupt(name))])
    agent.model.turns.append("done")
    agent("go")

    assert f"interrupt name {name!r}: give a text" in next(iter(results_of(agent.messages).values()))


def test_a_checkpoint_that_nobody_takes_is_refused():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", plain)], plugins=[checkpoints()])
    agent("go")
    with pytest.raises(ResumeError, match="no plugin takes this checkpoint"):
        agent({"checkpointResume": {"of": "another"}})

    assert agent.suspension is not None


def test_an_answer_that_lacks_everything_is_told_what_it_holds():
    agent = Agent(model=FakeModel(use("t"), "done"), tools=[FakeTool("t", asks)])
    agent("go")
    for given, held in [({}, "nothing"), ({"b": 1, "a": 2}, "a, b")]:
        with pytest.raises(ResumeValueError, match=rf"interruptResponse holds {held}: it needs"):
            agent([{"interruptResponse": given}])


def test_other_messages_from_a_snapshot_end_the_pause():
    other = Agent(model=FakeModel("hi"))
    other("hello")
    snapshot = other.take_snapshot(include=["messages"])
    agent = Agent(model=FakeModel(use("t"), "fresh"), tools=[FakeTool("t", asks)])
    agent("go")
    agent.load_snapshot(snapshot)

    assert agent.suspension is None
    assert str(agent("something else")) == "fresh\n"


def test_arguments_that_no_tool_can_use_are_remembered_over_a_pause(go_on):
    tool = FakeTool("t", plain)
    turns = [[use("asks", tool_use_id="A"), use("t", "{not json", tool_use_id="B")], "done"]
    options = {"model": FakeModel(*turns), "tools": [FakeTool("asks", asks), tool]}
    agent = Agent(**options)
    (question,) = agent("go").interrupts
    agent = go_on(agent, **options)
    agent(answer((question.id, 1)))

    assert tool.calls == 0
    assert statuses_of(agent.messages) == {"A": "success", "B": "error"}
    assert "Send the arguments as one JSON object" in results_of(agent.messages)["B"]
