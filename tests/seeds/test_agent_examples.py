"""The pattern of every example in the interface that Ropewalk's users know, as it reads here."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from ropewalk import (
    AfterModelCallEvent,
    Agent,
    AgentClosedError,
    BeforeModelCallEvent,
    HookProvider,
    tool,
)
from ropewalk.errors import SnapshotException
from ropewalk_testing import ScriptedModel, turn, use


@tool
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression.

    Args:
        expression: Such as "1 + 1".
    """
    left, _, right = expression.partition("+")
    return str(int(left) + int(right))


def quiet(*turns, **parameters):
    return Agent(model=ScriptedModel(turns), callback_handler=None, **parameters)


def test_natural_language_for_conversation():
    result = quiet("It is fine.")("Analyze this data")

    assert (str(result), result.stop_reason) == ("It is fine.\n", "end_turn")


def test_method_style_for_direct_tool_access():
    agent = quiet(tools=[calculator])

    assert agent.tool.calculator(expression="1 + 2")["content"] == [{"text": "3"}]
    assert agent.tool_names == ["calculator"]


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        ("hello!", [{"text": "hello!"}]),
        (
            [{"text": "hello"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}],
            [{"text": "hello"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}],
        ),
        ([{"role": "user", "content": [{"text": "hello"}]}], [{"text": "hello"}]),
    ],
    ids=["a text", "content blocks", "messages"],
)
def test_the_forms_of_a_prompt(prompt, sent):
    agent = quiet("hi")
    agent(prompt)

    assert agent.messages[0] == {"role": "user", "content": sent}


def test_no_input_goes_on_with_the_history():
    agent = quiet("hi", messages=[{"role": "user", "content": [{"text": "hello"}]}])
    agent()

    assert [message["role"] for message in agent.messages] == ["user", "assistant"]


async def test_cancelling_from_another_context():
    model = ScriptedModel([turn("never", stall=60)])
    agent = Agent(model=model, callback_handler=None)

    task = asyncio.create_task(agent.invoke_async("Hello"))
    await model.wait_stalled()
    agent.cancel()
    agent.cancel()

    assert (await task).stop_reason == "cancelled"


async def test_streaming_events():
    pieces = [event["data"] async for event in quiet(turn("one two", deltas=3)).stream_async("Go.") if "data" in event]

    assert "".join(pieces) == "one two"
    assert len(pieces) > 1


def test_one_agent_as_a_tool_of_another():
    researcher = quiet("They hang upside down.", name="researcher", description="Finds information")
    writer = quiet(
        use("researcher", {"input": "bats"}), "Bats hang upside down.", name="writer", tools=[researcher.as_tool()]
    )

    assert str(writer("Write about bats")) == "Bats hang upside down.\n"
    assert writer.tool_names == ["researcher"]


class Weather(BaseModel):
    city: str
    degrees: int


def test_structured_output_of_a_call():
    agent = quiet(use("Weather", {"city": "Oslo", "degrees": 18}))
    result = agent("How warm is Oslo?", structured_output_model=Weather)

    assert result.structured_output == Weather(city="Oslo", degrees=18)
    assert agent.tool_names == []


def test_structured_output_from_a_prompt_that_is_not_kept():
    agent = quiet(use("Weather", {"city": "Oslo", "degrees": 18}))

    assert agent.structured_output(Weather, "Oslo is at 18 degrees.").degrees == 18
    assert agent.messages == []


def test_limits_of_a_call():
    agent = quiet(*[use("calculator", {"expression": "1 + 1"})] * 3, "done", tools=[calculator])

    assert agent("go", limits={"turns": 2}).stop_reason == "limit_turns"


CALLS = []


def log_model_call(event: BeforeModelCallEvent) -> None:
    CALLS.append(("typed", event.agent.name))


def log_event(event: BeforeModelCallEvent | AfterModelCallEvent) -> None:
    CALLS.append(("union", type(event).__name__))


def multi_handler(event) -> None:
    CALLS.append(("list", type(event).__name__))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((log_model_call,), [("typed", "Ropewalk Agent")]),
        ((log_model_call, BeforeModelCallEvent), [("typed", "Ropewalk Agent")]),
        ((log_event,), [("union", "BeforeModelCallEvent"), ("union", "AfterModelCallEvent")]),
        (
            (multi_handler, [BeforeModelCallEvent, AfterModelCallEvent]),
            [("list", "BeforeModelCallEvent"), ("list", "AfterModelCallEvent")],
        ),
    ],
    ids=["inferred", "explicit", "union", "list"],
)
def test_the_ways_to_add_a_hook(arguments, expected):
    CALLS.clear()
    agent = quiet("hi")
    agent.add_hook(*arguments)
    agent("hello")

    assert expected == CALLS


def test_a_hook_provider_given_to_the_constructor():
    seen = []

    class Provider(HookProvider):
        def register_hooks(self, registry, **kwargs):
            registry.add_callback(BeforeModelCallEvent, seen.append)

    quiet("hi", hooks=[Provider()])("hello")

    assert [type(event) for event in seen] == [BeforeModelCallEvent]


def test_system_prompt_as_text_and_as_blocks():
    agent = quiet(
        "hi", system_prompt=[{"text": "Be brief."}, {"cachePoint": {"type": "default"}}, {"text": "Be kind."}]
    )
    blocks = agent.system_prompt_content
    agent("hello")

    assert agent.system_prompt == "Be brief.\nBe kind."
    assert blocks == [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}, {"text": "Be kind."}]
    assert list(agent.model.requests[0].system) == blocks
    agent.system_prompt = None
    assert (agent.system_prompt, agent.system_prompt_content) == (None, None)


def test_a_snapshot_is_taken_loaded_and_loaded_again_elsewhere():
    agent = quiet("hi", state={"user": "ada"})
    agent("hello")
    agent.plugin_state("counter").set("n", 1)
    snapshot = agent.take_snapshot(preset="session", app_data={"tab": 3})
    forks = [quiet("left"), quiet("right")]
    for fork in forks:
        fork.load_snapshot(snapshot)

    forks[0]("one way")
    forks[0].plugin_state("counter").set("n", 2)

    assert forks[1].messages == agent.messages
    assert forks[1].plugin_state("counter").get("n") == 1
    assert forks[1].state.get("user") == "ada"
    with pytest.raises(SnapshotException):
        agent.take_snapshot()


def test_cleaning_up():
    agent = quiet("hi")
    agent("hello")
    agent.cleanup()
    with pytest.raises(AgentClosedError):
        agent("again")

    with quiet("hi") as other:
        other("hello")

    with pytest.raises(AgentClosedError):
        other("again")


def test_an_agent_id_with_path_separators_is_a_value_error():
    with pytest.raises(ValueError, match="path separators"):
        Agent(agent_id="a/b")
