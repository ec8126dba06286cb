from __future__ import annotations

import json

import pytest

from ropewalk import AgentResult, EventLoopMetrics


def result(content, **more):
    return AgentResult("end_turn", {"role": "assistant", "content": content}, EventLoopMetrics(), **more)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"text": "done"}], "done\n"),
        ([{"text": "a"}, {"text": "b"}], "a\nb\n"),
        ([], ""),
        ([{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "so"}], "so\n"),
        ([{"citationsContent": {"content": [{"text": "cited"}], "citations": []}}], "cited\n"),
    ],
)
def test_a_result_reads_as_its_texts(content, text):
    assert str(result(content)) == text


def test_a_result_goes_through_json_and_back():
    first = result(
        [{"text": "done"}, {"image": {"source": {"bytes": b"\x00\xff"}}}], checkpoint={"position": "after_model"}
    )
    value = json.loads(json.dumps(first.to_dict()))
    second = AgentResult.from_dict(value)

    assert value["type"] == "agent_result"
    assert second.stop_reason == "end_turn"
    assert second.checkpoint == {"position": "after_model"}
    assert str(second) == "done\n"


@pytest.mark.parametrize(
    "value", [None, {}, {"type": "other"}, {"type": "agent_result", "stop_reason": "x", "message": 3}]
)
def test_what_is_no_result_is_refused(value):
    with pytest.raises(ValueError, match=r"agent_result|message"):
        AgentResult.from_dict(value)
