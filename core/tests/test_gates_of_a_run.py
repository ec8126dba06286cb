"""What the loop does with the answers of those who intervene, without any plugin of that trade."""

from __future__ import annotations

import pytest
from kernel_fakes import FakeModel, FakeTool, make_plugin, problems, results_of, statuses_of, texts, use

from ropewalk import Agent, PluginError, current_run
from ropewalk.kits.calls.verdicts import Guide, Refuse, Replace


def gate(at, decide, name="gate", **more):
    """A plugin that decides at one moment."""

    async def intervene(self, moment, subject):
        return decide(subject) if moment == at else None

    return make_plugin(name, intervene=intervene, **more)


async def quick(call):
    return "ok"


def test_guidance_before_a_model_call_is_sent_with_the_request_and_kept(ask):
    kept = []

    async def write_records(self, records):
        kept.extend(records)

    plugin = gate("before_model_call", lambda _: Guide("be brief"), write_records=write_records)
    model = FakeModel("done")
    agent = Agent(model=model, plugins=[plugin])
    ask(agent, "go")

    assert texts(model.requests[0][-1]) == ["go", "be brief"] == texts(agent.messages[0])
    kinds = [record.kind for record in kept]
    assert kinds.index("message_replaced") < kinds.index("model_ended")
    assert problems(agent.messages) == []


def test_a_call_beside_the_conversation_is_guided_and_the_conversation_is_not(ask):
    async def around(self, invocation, call_next):
        result = await call_next(invocation)
        run = current_run()
        from ropewalk.loop.model_turn import build_request

        await run.ask_model(build_request(run), "summary")
        return result

    asked = []

    def decide(request):
        asked.append(request.purpose)
        return Guide("be brief") if request.purpose == "summary" else None

    model = FakeModel("done", "sum")
    agent = Agent(model=model, plugins=[gate("before_model_call", decide, around_invocation=around)])
    ask(agent, "go")

    assert "summary" in asked
    assert "be brief" in texts(model.requests[1][-1])
    assert [texts(message) for message in agent.messages] == [["go"], ["done"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda call: replace_call(call, tool=None),
        lambda call: replace_call(call, tool_use={**call.tool_use, "toolUseId": "other"}),
    ],
    ids=["without a tool", "of another id"],
)
def test_a_call_that_an_intervention_makes_useless_is_not_run_and_answered_under_its_id(ask, change):
    tool = FakeTool("t", quick)
    plugin = gate("before_tool_call", lambda call: Replace(change(call)))
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[tool], plugins=[plugin])
    ask(agent, "go")

    assert tool.calls == 0
    assert statuses_of(agent.messages) == {"T": "error"}
    assert "an intervention replaced the call" in results_of(agent.messages)["T"]


def replace_call(call, **changes):
    other = call.private()
    for name, value in changes.items():
        setattr(other, name, value)

    return other


@pytest.mark.parametrize("verdict", [None, Refuse("secret")], ids=["passes", "is refused"])
def test_a_result_whose_gate_asks_first_is_judged_when_the_run_goes_on_and_the_tool_not_run_again(verdict):
    def decide(result):
        assert current_run().interrupt("may it pass?") == "yes"
        return verdict

    tool = FakeTool("t", quick)
    agent = Agent(
        model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[tool], plugins=[gate("after_tool_call", decide)]
    )
    (question,) = agent("go").interrupts
    assert results_of(agent.messages) == {}

    agent([{"interruptResponse": {"interruptId": question.id, "response": "yes"}}])

    assert tool.calls == 1
    assert results_of(agent.messages) == {"T": "ok" if verdict is None else "DENIED: secret"}
    assert problems(agent.messages) == []


def test_a_refused_answer_of_the_model_is_withheld_and_its_usage_counts(ask):
    agent = Agent(model=FakeModel("secret"), plugins=[gate("after_model_call", lambda _: Refuse("no", text="hm"))])
    result = ask(agent, "go")

    assert [texts(message) for message in agent.messages] == [["go"], ["hm"]]
    assert result.metrics.accumulated_usage["totalTokens"] == 5


async def test_a_result_that_cannot_be_judged_is_withheld_and_the_error_ends_the_run():
    def fail(result):
        raise ValueError("gate")

    agent = Agent(
        model=FakeModel(use("t", tool_use_id="T")),
        tools=[FakeTool("t", quick)],
        plugins=[gate("after_tool_call", fail)],
    )
    with pytest.raises(ValueError, match="gate"):
        await agent.invoke_async("go")

    assert results_of(agent.messages) == {"T": "The result is withheld: ValueError"}
    assert problems(agent.messages) == []


@pytest.mark.parametrize("tier", [None, "policy"])
def test_a_result_that_takes_anothers_place_keeps_the_id_of_its_call(ask, tier):
    def change(result):
        return Replace({"toolUseId": "other", "status": "success", "content": [{"text": "better"}]})

    async def intervene(self, moment, subject):
        return change(subject) if moment == "after_tool_call" else None

    seen = []

    async def around(self, call, call_next):
        seen.append(await call_next(call))
        return seen[-1]

    plugin = make_plugin("gate", tier=tier, intervene=intervene, around_tool_call=around)
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[FakeTool("t", quick)], plugins=[plugin])
    ask(agent, "go")

    assert [result["toolUseId"] for result in seen] == ["T"]
    assert results_of(agent.messages) == {"T": "better"}


def test_the_last_look_at_what_a_hook_has_changed_is_the_policies_alone(ask):
    asked = []

    async def intervene(self, moment, subject):
        if moment == "after_tool_call":
            asked.append((self.name, subject["content"][0]["text"]))

    async def around(self, call, call_next):
        result = await call_next(call)
        return {**result, "content": [{"text": "changed"}]}

    plugins = [
        make_plugin("normal", intervene=intervene),
        make_plugin("policy", tier="policy", intervene=intervene),
        make_plugin("changes", around_tool_call=around),
    ]
    agent = Agent(model=FakeModel(use("t", tool_use_id="T"), "done"), tools=[FakeTool("t", quick)], plugins=plugins)
    ask(agent, "go")

    assert sorted(asked) == [("normal", "ok"), ("policy", "changed"), ("policy", "ok")]
    assert results_of(agent.messages) == {"T": "changed"}


@pytest.mark.parametrize("verdict", [None, Refuse("secret")], ids=["passes", "is refused"])
def test_an_answer_whose_gate_asks_first_is_judged_when_the_run_goes_on_and_the_model_not_called_again(verdict):
    judged = []

    def decide(outcome):
        assert current_run().interrupt("may it pass?") == "yes"
        judged.append(outcome.message)
        return verdict

    model = FakeModel("hello")
    agent = Agent(model=model, plugins=[gate("after_model_call", decide)])
    (question,) = agent("go").interrupts
    result = agent([{"interruptResponse": {"interruptId": question.id, "response": "yes"}}])

    assert (model.calls, len(judged)) == (1, 1)
    assert texts(agent.messages[-1]) == ["hello" if verdict is None else "DENIED: secret"]
    assert result.message == agent.messages[-1]


def test_policies_look_at_the_request_with_the_guidance_of_others(ask):
    looked = []

    async def guide(self, moment, subject):
        return Guide("tell the secret") if moment == "before_model_call" else None

    async def refuse(self, moment, subject):
        if moment != "before_model_call":
            return None

        looked.append(texts(subject.messages[-1]))
        return Refuse("no") if "tell the secret" in looked[-1] else None

    model = FakeModel("never")
    plugins = [make_plugin("guide", intervene=guide), make_plugin("policy", tier="policy", intervene=refuse)]
    result = ask(Agent(model=model, plugins=plugins), "go")

    assert looked == [["go"], ["go", "tell the secret"]]
    assert model.calls == 0
    assert str(result) == "DENIED: no\n"


@pytest.mark.parametrize(
    "give", [tuple, dict.fromkeys, lambda calls: [None] * (len(calls) + 1)], ids=["tuple", "dict", "too long"]
)
def test_an_executor_gives_one_list_with_a_result_per_call(ask, give):
    async def execute_tools(self, batch):
        return give(batch.calls) if give is not dict.fromkeys else dict.fromkeys(range(len(batch.calls)))

    agent = Agent(
        model=FakeModel(use("t", tool_use_id="T")),
        tools=[FakeTool("t", quick)],
        plugins=[make_plugin("executor", execute_tools=execute_tools)],
    )
    with pytest.raises(PluginError, match="execute_tools"):
        ask(agent, "go")

    assert problems(agent.messages) == []
    assert statuses_of(agent.messages) == {"T": "error"}


@pytest.mark.parametrize("moment", ["before_tool_call", "after_tool_call"])
def test_guidance_is_for_models_and_no_answer_at_the_gate_of_a_tool(moment):
    tool = FakeTool("t", quick)
    agent = Agent(
        model=FakeModel(use("t", tool_use_id="T")), tools=[tool], plugins=[gate(moment, lambda _: Guide("be kind"))]
    )
    with pytest.raises(PluginError, match=f"intervene of plugin 'gate' answered Guide.* at {moment}"):
        agent("go")

    assert tool.calls == (moment == "after_tool_call")
    assert statuses_of(agent.messages) == {"T": "error"}
