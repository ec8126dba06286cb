"""`ropewalk run`, with models that play scripts."""

from __future__ import annotations

import json

import pytest

from ropewalk_cli.run import make_agent, model_string

AGENT = """
from ropewalk import Agent
from ropewalk_testing import ScriptedModel, turn, use


class Add:
    tool_name = "add"
    tool_spec = {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        numbers = call.tool_use["input"]
        call.emit("half way")
        if "b" not in numbers:
            raise ValueError("b is missing")

        text = f"{numbers['a'] + numbers['b']}\\nmore"
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


SCRIPT = [
    ["I add.", use("add", {"a": 1, "b": 2}, id="A"), use("add", {"a": 3}, id="B")],
    turn("That is ", "3.", deltas=2),
]
agent = Agent(model=ScriptedModel(SCRIPT), tools=[Add()])


def shouting():
    return Agent(model=ScriptedModel(["quietly"]), callback_handler=lambda **event: print("EVENT", *event))
"""


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


# -- the answer ----------------------------------------------------------------------------------------------------


def test_the_answer_is_printed_and_its_line_ended(shell):
    result = shell.run("run", "--model", shell.script({"turn": "Hello.", "deltas": 3}), "Hi")

    assert (result.stdout, result.stderr, result.exit_code) == ("Hello.\n", "", 0)


def test_tool_calls_go_to_standard_error_and_texts_to_lines_of_their_own(shell):
    shell.write("with_agent.py", AGENT)

    result = shell.run("run", "--agent", "with_agent:agent", "Add.")

    assert (result.stdout, result.exit_code) == ("I add.\nThat is 3.\n", 0)
    assert result.stderr.splitlines() == [
        'Tool #1: add {"a": 1, "b": 2}',
        'Tool #2: add {"a": 3}',
        "Tool #1: success: 3",
        "Tool #2: error: Error: b is missing",
    ]


def test_verbose_shows_thinking_whole_results_and_what_tools_stream(shell):
    thinking = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    result = shell.run("run", "-v", "-m", shell.script([thinking, {"text": "So."}]), "Hi")

    assert (result.stdout, result.stderr) == ("So.\n", "hm\n")

    shell.write("with_agent.py", AGENT)
    result = shell.run("run", "-v", "--agent", "with_agent:agent", "Add.")

    assert "add: half way" in result.stderr


def test_thinking_is_not_shown_unasked(shell):
    thinking = {"reasoningContent": {"reasoningText": {"text": "hm"}}}

    assert shell.run("run", "-m", shell.script([thinking, {"text": "So."}]), "Hi").stderr == ""


# -- the prompt ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_the_prompt_is_read_from_a_pipe(shell, arguments):
    result = shell.run("run", "-m", "testing:echo", *arguments, stdin="from the pipe\n")

    assert result.stdout == "from the pipe\n"


def test_a_given_prompt_leaves_the_pipe_alone(shell):
    assert shell.run("run", "-m", "testing:echo", "given", stdin="piped").stdout == "given\n"


@pytest.mark.parametrize("arguments", [(), ("-",), ("",), ("  ",)])
def test_no_prompt_is_wrong_usage(shell, arguments):
    result = shell.run("run", "-m", "testing:echo", *arguments)

    assert result.exit_code == 2
    assert "there is no prompt: give one, as in ropewalk run" in result.stderr


def test_the_system_prompt_reaches_the_agent():
    assert make_agent("testing:echo", None, (), (), "Be brief.").system_prompt == "Be brief."


# -- the model -----------------------------------------------------------------------------------------------------


def test_the_model_may_come_from_the_environment(shell):
    shell.environment["ROPEWALK_MODEL"] = "testing:echo"

    assert shell.run("run", "from the environment").stdout == "from the environment\n"


def test_the_option_wins_over_the_environment(shell):
    shell.environment["ROPEWALK_MODEL"] = "testing:nope"

    assert shell.run("run", "-m", "testing:echo", "hi").stdout == "hi\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("local", "local:"),
        ("local:qwen", "local:qwen"),
        ("testing", "testing:"),
        ("anthropic.claude", "anthropic.claude"),
    ],
)
def test_the_bare_name_of_a_provider_is_its_default_model(given, expected):
    assert model_string(given) == expected


# -- JSON ----------------------------------------------------------------------------------------------------------


def test_json_prints_events_and_ends_in_the_result(shell):
    shell.write("with_agent.py", AGENT)

    result = shell.run("run", "--json", "--agent", "with_agent:agent", "Add.")

    events = lines(result)
    assert (result.stderr, result.exit_code) == ("", 0)
    assert not any("event" in event for event in events)
    assert "".join(event["data"] for event in events if "data" in event) == "I add.That is 3."
    assert events[-1] == {
        "result": {
            "stop_reason": "end_turn",
            "message": {"role": "assistant", "content": [{"text": "That is "}, {"text": "3."}]},
            "usage": {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30},
            "tools": [
                {"id": "A", "name": "add", "input": {"a": 1, "b": 2}, "status": "success", "result": "3\nmore"},
                {"id": "B", "name": "add", "input": {"a": 3}, "status": "error", "result": "Error: b is missing"},
            ],
        }
    }


def test_verbose_json_has_the_providers_events_too(shell):
    result = shell.run("run", "--json", "-v", "-m", "testing:echo", "hi")

    assert {"event": {"messageStart": {"role": "assistant"}}} in lines(result)


def test_json_ends_in_the_error_when_there_is_one(shell):
    result = shell.run("run", "--json", "-m", shell.script(), "hi")

    assert lines(result)[-1]["error"]["type"] == "ScriptExhausted"
    assert result.exit_code == 1


def test_json_stays_json_whatever_the_model_says(shell):
    result = shell.run("run", "--json", "-m", shell.script("é \ud83d \x1b"), "hi")

    assert result.stdout.isascii()
    assert lines(result)[-1]["result"]["message"]["content"] == [{"text": "é \N{REPLACEMENT CHARACTER} \x1b"}]


# -- how it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "code", "note"),
    [
        ("end_turn", 0, ""),
        ("stop_sequence", 0, ""),
        ("content_filtered", 3, "stopped early: content_filtered\n"),
        ("guardrail_intervened", 3, "stopped early: guardrail_intervened\n"),
    ],
)
def test_the_exit_code_tells_why_the_run_stopped(shell, stop, code, note):
    result = shell.run("run", "-m", shell.script({"turn": "so far", "stop": stop}), "hi")

    assert (result.stdout, result.stderr, result.exit_code) == ("so far\n", note, code)


def test_the_models_token_limit_is_an_early_stop(shell):
    result = shell.run("run", "-m", shell.script({"turn": "so far", "stop": "max_tokens"}), "hi")

    assert (result.stdout, result.exit_code) == ("so far\n", 3)
    assert "Error: MaxTokensReachedException: " in result.stderr


def test_an_error_has_a_message_and_no_traceback(shell):
    result = shell.run("run", "-m", "testing:nope", "hi")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: UnknownModelError: model 'testing:nope'")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", [("--debug", "run"), ("run", "--debug")])
def test_debug_lets_the_error_through(shell, arguments):
    result = shell.run(*arguments, "-m", "testing:nope", "hi")

    assert type(result.exception).__name__ == "UnknownModelError"


# -- agents, tools, plugins ----------------------------------------------------------------------------------------


def test_the_callback_handler_of_an_agent_stays(shell):
    shell.write("with_agent.py", AGENT)

    assert "EVENT data" in shell.run("run", "--agent", "with_agent:shouting", "hi").stdout


def test_an_agent_is_complete(shell):
    result = shell.run("run", "--agent", "a:b", "--model", "m", "--tools", "t", "hi")

    assert result.exit_code == 2
    assert "leave out --model, --tools" in result.stderr


def test_a_module_that_cannot_be_imported_is_named(shell):
    shell.write("broken_module.py", "1 / 0")

    result = shell.run("run", "--agent", "broken_module:agent", "hi")

    assert result.exit_code == 1
    assert "importing broken_module fails with ZeroDivisionError" in result.stderr


CLOSING = """
from ropewalk import Agent, hookimpl


class Closing:
    name = "closing"

    @hookimpl
    async def on_close(self):
        raise ValueError("cannot close")


agent = Agent(model="testing:echo", plugins=[Closing()])
"""


def test_an_agent_is_closed_and_what_fails_then_is_reported_after_the_answer(shell):
    shell.write("closing.py", CLOSING)

    result = shell.run("run", "--agent", "closing:agent", "hi")

    assert (result.stdout, result.exit_code) == ("hi\n", 1)
    assert "ValueError: cannot close" in result.stderr


TOOLS = """
from ropewalk import tool


@tool
def double(number: int) -> int:
    \"\"\"Doubles a number.\"\"\"
    return 2 * number
"""


@pytest.mark.parametrize("source", ["some_tools.py", "some_tools:double"])
def test_tools_come_from_files_and_functions(shell, source):
    shell.write("some_tools.py", TOOLS)
    use = {"toolUse": {"toolUseId": "A", "name": "double", "input": {"number": 21}}}

    result = shell.run("run", "-m", shell.script(use, "Done."), "--tools", source, "hi")

    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines() == ['Tool #1: double {"number": 21}', "Tool #1: success: 42"]


def test_a_tool_function_that_does_not_exist_is_named(shell):
    result = shell.run("run", "-m", "testing:echo", "--tools", "no_such_tools:function", "hi")

    assert result.exit_code == 1
    assert "no_such_tools" in result.stderr


def test_an_unknown_plugin_is_named(shell):
    result = shell.run("run", "-m", "testing:echo", "--plugin", "nonesuch", "hi")

    assert result.exit_code == 1
    assert "there is no plugin 'nonesuch'" in result.stderr


def test_a_plugin_can_be_used_and_left_out(shell):
    result = shell.run("run", "-m", "testing:echo", "--plugin", "testing", "--plugin=-console", "hi")

    assert (result.stdout, result.exit_code) == ("hi\n", 0)
