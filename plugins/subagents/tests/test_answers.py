from __future__ import annotations

import pydantic
import pytest

from ropewalk import AgentResult, EventLoopMetrics
from ropewalk_subagents.answers import tool_result


class Person(pydantic.BaseModel):
    name: str
    age: int


class Nothing(pydantic.BaseModel):
    def __bool__(self) -> bool:
        return False


def ended(reason="end_turn", *texts, **more):
    message = {"role": "assistant", "content": [{"text": text} for text in texts]}
    return AgentResult(reason, message, EventLoopMetrics(), **more)


def test_an_answer_is_its_text():
    assert tool_result(ended("end_turn", "one", "two"), "scout", "T1") == {
        "toolUseId": "T1",
        "status": "success",
        "content": [{"text": "one\ntwo"}],
    }


def test_structured_output_is_a_json_block():
    result = tool_result(ended("tool_use", "text", structured_output=Person(name="Ann", age=3)), "scout", "T1")

    assert result["content"] == [{"json": {"name": "Ann", "age": 3}}]
    assert result["status"] == "success"


def test_structured_output_that_is_falsy_is_there_all_the_same():
    assert tool_result(ended("tool_use", structured_output=Nothing()), "scout", "T1")["content"] == [{"json": {}}]


@pytest.mark.parametrize("reason", ["limit_turns", "limit_total_tokens", "limit_seconds", "interrupt", "checkpoint"])
def test_an_end_before_the_answer_is_an_error_with_what_was_said(reason):
    result = tool_result(ended(reason, "half"), "scout", "T1")

    assert result["status"] == "error"
    assert result["content"] == [{"text": f"Agent 'scout' ended before it had an answer ({reason}); it had said: half"}]


def test_a_cancelled_run_is_an_error():
    result = tool_result(ended("cancelled", "Cancelled by user"), "scout", "T1")

    assert result == {
        "toolUseId": "T1",
        "status": "error",
        "content": [{"text": "Agent 'scout' ended before it had an answer (cancelled)"}],
    }


def test_an_empty_answer_is_said_to_be_empty():
    assert tool_result(ended("end_turn", ""), "scout", "T1")["content"] == [
        {"text": "(agent 'scout' gave an empty answer)"}
    ]
