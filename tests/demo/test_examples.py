"""The scripts of examples/ do what they say, with a scripted model in place of the embedded one."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk import ModelThrottledException
from ropewalk_testing import ScriptedModel, use

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SHOP = """
import sys
sys.path.insert(0, {examples!r})
import survive_kill
from ropewalk_testing import ScriptedModel, use

turns = [use("look_up_order", {{"number": 7}}), use("ship", {{"item": "blue rope", "to": "Ada"}}), "I do not know."]
agent = survive_kill.main(ScriptedModel(turns[{said}:]))
print()
print(agent.messages[4]["content"][0]["toolResult"]["content"][0]["text"])
"""


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_stands_in_the_list():
    page = (EXAMPLES / "README.md").read_text()
    assert [path.name for path in sorted(EXAMPLES.glob("*.py")) if f"[{path.name}]({path.name})" not in page] == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.usefixtures("ropewalk_env")
def test_the_second_process_goes_on_where_the_first_was_killed(tmp_path):
    def process(said):
        code = SHOP.format(examples=str(EXAMPLES), said=said)
        return subprocess.run(
            [sys.executable, "-c", code], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300
        )

    first = process(0)
    assert first.returncode == -signal.SIGKILL
    assert "looking up order 7" in first.stdout
    assert "shipping blue rope to Ada" in first.stdout

    second = process(2)
    assert second.returncode == 0, second.stderr
    assert "looking up" not in second.stdout
    assert "shipping" not in second.stdout
    assert "I do not know." in second.stdout
    assert "its outcome is unknown" in second.stdout


@pytest.mark.parametrize(("answer", "status"), [("y", "success"), ("no", "error")])
def test_the_approval_decides_whether_the_file_goes(answer, status):
    model = ScriptedModel([use("delete_file", {"path": "notes.txt"}), "Done."])
    asked = []
    load("approval").main(model, lambda question: asked.append(question) or answer)

    assert len(asked) == 1
    assert "notes.txt" in asked[0]
    assert model.last_request.messages[-1]["content"][0]["toolResult"]["status"] == status


def test_each_checkpoint_is_gone_on_from_by_a_new_agent(capsys):
    model = ScriptedModel([use("measure", {"rope": "red"}), "It is 12 metres long."])
    result = load("checkpoints").main(model)

    assert result.stop_reason == "end_turn"
    assert model.last_request.messages[-1]["content"][0]["toolResult"]["content"] == [{"text": "12 metres"}]
    printed = capsys.readouterr().out
    assert "(checkpoint after_model 0)" in printed
    assert "(checkpoint after_tools 0)" in printed


def test_the_spare_model_answers_when_the_first_refuses(capsys):
    first = ScriptedModel([ModelThrottledException("slow down")])
    result = load("models").main(first, ScriptedModel(["To tie a knot."]))

    assert str(result) == "To tie a knot.\n"
    assert "(answered by " in capsys.readouterr().out
    assert first.calls == 1


def test_without_a_failure_the_spare_model_is_not_asked():
    spare = ScriptedModel([])
    result = load("models").main(ScriptedModel(["To climb."]), spare)

    assert str(result) == "To climb.\n"
    assert spare.calls == 0
