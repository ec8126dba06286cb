"""Guidance for the model."""

from __future__ import annotations

import pytest

from ropewalk import hookimpl
from ropewalk_interventions import GuidanceLimitError, Guide, Proceed, Transform
from ropewalk_testing import assert_valid_history, use


def texts(messages):
    return [(m["role"], [b.get("text", "tool") for b in m["content"]]) for m in messages]


def better(event):
    return Guide("do better") if "bad" in str(event.stop_response.message) else Proceed()


def test_an_answer_is_dropped_and_the_feedback_is_in_the_history(make_agent, handler):
    agent = make_agent(handler("judge", after_model_call=better), turns=["bad", "good"])

    assert str(agent("go")) == "good\n"
    assert texts(agent.messages) == [("user", ["go", "[judge] do better"]), ("assistant", ["good"])]
    assert texts(agent.model.requests[1].messages) == [("user", ["go", "[judge] do better"])]


def test_an_answer_that_asks_for_tools_is_dropped_whole(make_agent, handler, danger):
    def judge(event):
        return Guide("no tools") if "toolUse" in str(event.stop_response.message) else Proceed()

    agent = make_agent(handler("judge", after_model_call=judge))

    assert str(agent("go")) == "done\n"
    assert danger.ran == []
    assert_valid_history(agent.messages)


def test_guidance_before_the_model_joins_what_it_is_asked(make_agent, handler):
    agent = make_agent(
        handler("a", before_model_call=lambda event: Guide("be brief")),
        handler("b", before_model_call=lambda event: Guide("be kind")),
        turns=["hello"],
    )

    agent("go")

    assert texts(agent.model.requests[0].messages) == [("user", ["go", "[a] be brief\n[b] be kind"])]
    assert texts(agent.messages)[0] == ("user", ["go", "[a] be brief\n[b] be kind"])


def test_guidance_before_each_model_call_is_given_once_in_each(make_agent, handler):
    agent = make_agent(handler("a", before_model_call=lambda event: Guide("be brief")))

    agent("go")

    assert [str(request.messages).count("be brief") for request in agent.model.requests] == [1, 2]
    assert_valid_history(agent.messages)


def test_a_changed_request_can_be_guided_too(make_agent, handler):
    def hide(event):
        event.messages[0]["content"] = [{"text": "(redacted)"}]

    agent = make_agent(
        handler("a", before_model_call=lambda event: Transform(hide)),
        handler("b", before_model_call=lambda event: Guide("be kind")),
        turns=["hello"],
    )

    agent("the secret")

    assert texts(agent.model.requests[0].messages) == [("user", ["(redacted)", "[b] be kind"])]
    assert texts(agent.messages)[0] == ("user", ["the secret", "[b] be kind"])


def test_guidance_in_one_turn_is_bounded(make_agent, handler):
    agent = make_agent(handler("judge", after_model_call=better), turns=["bad"] * 9)

    with pytest.raises(GuidanceLimitError, match=r"guided the model 3 times in one turn .* \(now 3\)"):
        agent("go")

    assert agent.model.calls == 4
    assert_valid_history(agent.messages)


def test_every_turn_has_guidance_of_its_own(make_agent, handler):
    turns = ["bad", "bad", use("danger", {}, id="A"), "bad", "bad", "good"]
    agent = make_agent(handler("judge", after_model_call=better), turns=turns)

    assert str(agent("go")) == "good\n"


@pytest.mark.parametrize("most", [0, 1])
def test_the_bound_is_an_option(make_agent, handler, most):
    judge = handler("judge", after_model_call=better)
    agent = make_agent(judge, turns=["bad"] * 5, plugins=[("interventions", {"max_guidance": most})])

    with pytest.raises(GuidanceLimitError):
        agent("go")

    assert agent.model.calls == most + 1


def test_a_repeated_attempt_is_not_guided_again(make_agent, handler):
    class Again:
        name = "again"

        @hookimpl
        async def decide_retry(self, failure):
            return 0.0 if failure.attempt < 3 else None

    agent = make_agent(
        handler("a", before_model_call=lambda event: Guide("be brief")),
        turns=[ConnectionError("x"), ConnectionError("y"), "hello"],
        plugins=[Again()],
    )

    agent("go")

    assert texts(agent.messages)[0] == ("user", ["go", "[a] be brief"])
