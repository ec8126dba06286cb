"""The model at work on its own context."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

import pytest

from ropewalk import Agent, current_run, hookimpl
from ropewalk.kits.calls.invocation import REENTRANT
from ropewalk.kits.context import is_pinned
from ropewalk_context_agentic.plugin import ContextAgenticPlugin, status_line
from ropewalk_testing import ScriptedModel, assert_valid_history, turn, use

NAMES = ["summarize_context", "truncate_context", "pin_context", "retrieve_context"]
LOOKS = [use("look", {"at": i}) for i in range(8)]


def texts(messages):
    return [block["text"] for message in messages for block in message["content"] if "text" in block]


# -- tools and status line -----------------------------------------------------------------------------------------


def test_the_model_gets_four_tools(agent_of):
    agent, model = agent_of(["Hello."])

    agent("Hi.")

    assert [name for name in agent.tool_names if name.endswith("_context")] == NAMES
    assert [spec["name"] for spec in model.requests[0].tool_specs if spec["name"] in NAMES] == NAMES


def test_the_status_line_ends_each_request_and_is_in_no_message(agent_of):
    agent, model = agent_of([use("look"), "Done."], window=8_000)

    agent("Go.")

    for request in model.requests:
        assert request.messages[-1]["content"][-1]["text"].startswith("<context-status><used>")
        assert sum("<context-status>" in text for text in texts(request.messages)) == 1

    assert not any("<context-status>" in text for text in texts(agent.messages))


def test_the_status_line_grows_with_the_conversation(agent_of):
    agent, model = agent_of([turn(use("look"), usage=None), "Done."], window=8_000)

    agent("Go.")

    lines = [request.messages[-1]["content"][-1]["text"] for request in model.requests]
    used = [int(line.removeprefix("<context-status><used>").split(" / ")[0]) for line in lines]
    assert 0 < used[0] < used[1] < 8_000


def test_a_turn_that_was_paused_has_it_too(agent_of):
    class Ask:
        name = "ask"

        @hookimpl
        async def around_model_call(self, request, call_next):
            current_run().interrupt("go on?")
            return await call_next(request)

    agent, model = agent_of(["Done."], window=8_000, plugins=[Ask()])

    (question,) = agent("Go.").interrupts
    agent([{"interruptResponse": {"interruptId": question.id, "response": "yes"}}])

    assert "/ 8000 tokens" in texts(model.requests[0].messages)[-1]


def test_it_can_be_switched_off(agent_of):
    agent, model = agent_of(["Done."], status_line=False)

    agent("Go.")

    assert texts(model.requests[0].messages) == ["Go."]


@pytest.mark.parametrize(
    ("used", "window", "line"),
    [
        (500, 1_000, "<used>500 / 1000 tokens (50%)</used><remaining>~500 tokens</remaining>"),
        (2_000, 1_000, "<used>2000 / 1000 tokens (200%)</used><remaining>~0 tokens</remaining>"),
        (1, 0, "<used>1 / 0 tokens (100%)</used><remaining>~0 tokens</remaining>"),
        (500, None, "<used>500 tokens</used>"),
    ],
)
def test_the_status_line_tells_used_and_remaining(used, window, line):
    assert status_line(used, window) == f"<context-status>{line}</context-status>"


def test_a_fault_is_a_note_in_it():
    assert "<note>broken</note>" in status_line(1, 2, "broken")


def test_agentic_brings_a_net_below():
    names = [name for name, _ in ContextAgenticPlugin().adopt("agentic")]
    assert names == ["summarize", "offload"]
    assert ContextAgenticPlugin().adopt("auto") is None


# -- summarize -----------------------------------------------------------------------------------------------------


def test_summarize_takes_effect_before_the_next_message(agent_of, chat, results):
    agent, model = agent_of([use("summarize_context", {"keep_recent": 4}), "In short.", "Done."], chat(20))

    agent("Make room.")

    assert [request.purpose for request in model.requests] == ["turn", "summarize", "turn"]
    assert "In short." in texts(model.requests[2].messages)[0]
    assert len(model.requests[2].messages) < 10
    assert_valid_history(agent.messages)
    assert results(agent.messages)[0].startswith("Done: it takes effect before your next message.")


def test_what_was_summarized_can_be_read_again(agent_of, chat, results):
    def read(request):
        text = results(request.messages)[-1]
        return use("retrieve_context", {"reference": text.split('"')[1], "pattern": "message 3 ", "context_lines": 0})

    agent, _ = agent_of([use("summarize_context"), "In short.", read, "Done."], chat(20))

    agent("Make room.")

    (shown,) = results(agent.messages)[-1:]
    assert "Assistant: message 3 word" in shown
    assert "message 4" not in shown


def test_a_summary_that_fails_changes_nothing_and_is_told(agent_of, chat):
    before = chat(20)
    agent, model = agent_of(
        [use("summarize_context"), RuntimeError("broken"), use("look"), "Done."], before, window=99_000
    )

    agent("Make room.")

    assert agent.messages[:20] == before
    assert "<note>summarize_context changed nothing: broken</note>" in texts(model.requests[-2].messages)[-1]


def test_the_note_goes_when_the_next_wish_is_carried_out(agent_of, chat):
    script = [use("summarize_context"), RuntimeError("broken"), use("truncate_context"), "Done."]
    agent, model = agent_of(script, chat(20), window=99_000)

    agent("Make room.")

    assert "<note>" in texts(model.requests[2].messages)[-1]
    assert "<note>" not in texts(model.requests[-1].messages)[-1]


async def test_a_cancel_while_it_is_written_leaves_the_history_and_the_wish(agent_of, chat):
    before, release = chat(20), threading.Event()
    agent, model = agent_of([use("summarize_context"), turn(stall=release), "Later.", "Done."], before)
    running = asyncio.create_task(agent.invoke_async("Make room."))
    await model.wait_stalled()

    agent.cancel()
    assert (await running).stop_reason == "cancelled"
    release.set()

    assert agent.messages[:20] == before
    assert agent.plugin_state("context-agentic").get("wishes")[0]["kind"] == "summarize"


async def test_a_summary_that_is_there_is_not_paid_for_again_when_the_next_one_is_cancelled(agent_of, chat):
    release = threading.Event()
    both = [use("summarize_context", {"keep_recent": keep}, id=f"t{keep}") for keep in (12, 4)]
    agent, model = agent_of([both, "One.", turn(stall=release), "Two.", "Done."], chat(20))
    running = asyncio.create_task(agent.invoke_async("Make room."))
    await model.wait_stalled()

    agent.cancel()
    assert (await running).stop_reason == "cancelled"
    release.set()

    assert "One." in texts(agent.messages)[0]
    assert [wish["keep_recent"] for wish in agent.plugin_state("context-agentic").get("wishes")] == [4]

    await agent.invoke_async("Go on.")

    assert [request.purpose for request in model.requests].count("summarize") == 3
    assert "Two." in texts(agent.messages)[0]
    assert len(agent.plugin_state("context-agentic").get("stashed")) == 2


def test_a_call_that_is_run_again_wishes_nothing_more(agent_of, chat):
    class Again:
        name = "again"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            await call_next(call)
            return await call_next(call)

    agent, model = agent_of([use("summarize_context"), "In short.", "Done."], chat(20), plugins=[Again()])

    agent("Make room.")

    assert [request.purpose for request in model.requests] == ["turn", "summarize", "turn"]


def test_a_run_beside_the_conversation_leaves_its_wishes_alone(agent_of, chat):
    class Beside:
        name = "beside"
        tool_name = "beside"
        tool_spec: Final = {"name": "beside", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}

        @hookimpl
        async def admit(self):
            return REENTRANT

        @hookimpl
        def provide_tools(self):
            return [self]

        async def invoke(self, call):
            text = [{"text": str(await call.agent.invoke_async("And this?"))}]
            return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": text}

    both = [use("truncate_context", {"keep_recent": 4}), use("beside")]
    turns = [both, use("truncate_context", {"keep_recent": 2}), "That.", "Done."]
    agent, model = agent_of(turns, chat(20), plugins=[Beside(), "-executor"])

    agent("Make room.")

    sizes = [len(request.messages) for request in model.requests]
    assert sizes[1] == 21  # the other run's first request: nobody has wished anything of it
    assert sizes[2] < 8
    assert sizes[3] < 10
    assert "wishes" not in agent.plugin_state("context-agentic")
    assert_valid_history(agent.messages)


# -- truncate ------------------------------------------------------------------------------------------------------


def test_truncate_drops_older_turns_and_keeps_the_task(agent_of, results):
    agent, model = agent_of([*LOOKS, use("truncate_context", {"keep_recent": 4}), "Done."])

    agent("THE TASK")

    assert_valid_history(agent.messages)
    last = model.requests[-1].messages
    assert "THE TASK" in texts(last)
    assert len(results(last)) == 3  # of two looks, and of the call itself
    assert "messages were removed here" in texts(last)[0]


def test_truncate_of_tool_results_keeps_every_turn(agent_of, results):
    agent, model = agent_of(
        [*LOOKS, use("truncate_context", {"keep_recent": 4, "message_type": "tool_results"}), "Done."]
    )

    agent("Go.")

    assert len(model.requests[-1].messages) == 19
    shown = results(agent.messages)
    assert sum(text.startswith("[removed: about") for text in shown) == 6
    assert "line 99" in shown[6]


def test_truncate_of_an_answers_text(agent_of, chat):
    agent, _ = agent_of(
        [use("truncate_context", {"keep_recent": 2, "message_type": "assistant_text"}), "Done."], chat(9)
    )
    long = agent.messages[1] = {"role": "assistant", "content": [{"text": "words " * 100}]}

    agent("Go.")

    assert long["content"][0]["text"] not in texts(agent.messages)
    assert agent.messages[1]["content"][0]["text"].startswith("[removed: about 150 tokens")


def test_nothing_to_truncate_is_told(agent_of):
    agent, model = agent_of([use("truncate_context"), "Done."], window=99_000)

    agent("Go.")

    assert "truncate_context changed nothing: there is nothing to truncate" in texts(model.requests[-1].messages)[-1]


def test_two_wishes_of_one_turn_are_carried_out_in_order(agent_of):
    both = [use("pin_context", {"select": [1]}), use("truncate_context", {"keep_recent": 0})]
    agent, _ = agent_of([*LOOKS, both, "Done."])

    agent("Go.")

    assert_valid_history(agent.messages)
    assert [is_pinned(message) for message in agent.messages] == [False, True, True, False, False, False]


# -- pin -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "pinned"),
    [
        ({}, [8]),
        ({"select": 3}, [6, 7, 8]),
        ({"select": "3"}, [6, 7, 8]),
        ({"select": [0, 2, 99]}, [0, 2]),
        ({"select": 99, "filter": "Message 5"}, [5]),
    ],
)
def test_pin_marks_the_selected_messages(agent_of, chat, arguments, pinned):
    agent, _ = agent_of([use("pin_context", arguments), "Done."], chat(8))

    agent("Keep this.")

    assert [place for place, message in enumerate(agent.messages) if is_pinned(message)] == pinned


def test_unpin_takes_the_mark_away(agent_of, chat):
    messages = chat(4)
    messages[0]["metadata"] = {"custom": {"pinned": True}}
    agent, _ = agent_of([use("pin_context", {"select": [0], "action": "unpin"}), "Done."], messages)

    agent("Go.")

    assert not any(map(is_pinned, agent.messages))


def test_pins_survive_the_models_own_summaries(agent_of, chat):
    script = [use("pin_context", {"select": [3]}), use("summarize_context", {"keep_recent": 0}), "In short.", "Done."]
    agent, _ = agent_of(script, chat(20))

    agent("Go.")

    assert any(text.startswith("message 3 ") for text in texts(agent.messages))
    assert not any(text.startswith("message 4 ") for text in texts(agent.messages))


# -- bad arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("summarize_context", {"keep_recent": -1}, "keep_recent is -1"),
        ("summarize_context", {"summary_ratio": 2}, "summary_ratio is 2"),
        ("summarize_context", {"message_type": "user_text"}, "give one of all, tool_results"),
        ("truncate_context", {"keep_recent": "many"}, "keep_recent is 'many'"),
        ("truncate_context", {"message_type": "dreams"}, "message_type is 'dreams'"),
        ("pin_context", {"select": "first"}, "select='first'"),
        ("pin_context", {"select": []}, "select="),
        ("pin_context", {"filter": 3}, "filter is 3"),
        ("pin_context", {"action": "glue"}, "action is 'glue'"),
        ("retrieve_context", {}, "nothing under reference ''"),
        ("retrieve_context", {"reference": "ctx_no"}, "there is: none"),
    ],
)
def test_wrong_arguments_are_an_error_result(agent_of, results, name, arguments, said):
    agent, _ = agent_of([use(name, arguments), "Done."])

    agent("Go.")

    (text,) = results(agent.messages)
    assert text.startswith("Error: ")
    assert said in text


# -- one plugin, several agents ------------------------------------------------------------------------------------


def test_one_agent_cannot_read_what_another_removed(chat, results):
    plugin = ContextAgenticPlugin()
    one = Agent(
        model=ScriptedModel([use("truncate_context"), "Done."]),
        messages=chat(20),
        plugins=[plugin],
        callback_handler=None,
    )
    one("Go.")
    reference = results(one.messages)[0].split('"')[1]
    other = Agent(
        model=ScriptedModel([use("retrieve_context", {"reference": reference}), "Done."]),
        plugins=[plugin],
        callback_handler=None,
    )

    other("Go.")

    assert results(other.messages)[0].startswith("Error: there is nothing under")


def test_what_was_removed_survives_a_snapshot(agent_of, chat, results):
    agent, _ = agent_of([use("truncate_context"), "Done."], chat(20))
    agent("Go.")
    reference = results(agent.messages)[0].split('"')[1]
    other, _ = agent_of([use("retrieve_context", {"reference": reference}), "Done."])

    other.load_snapshot(agent.take_snapshot(preset="session"))
    other("Show it.")

    assert "message 1 word" in results(other.messages)[-1]
