from __future__ import annotations

import pytest
from kernel_fakes import FakeModel, FakeTool, use

from ropewalk import Agent, MissingPluginError, hookimpl
from ropewalk.kits.hooks.call_options import OWNED


def test_a_keyword_that_is_no_option_goes_into_the_invocation_state_with_a_warning():
    seen = []
    tool = FakeTool("look", lambda call: seen.append(call.invocation_state["tenant"]))
    agent = Agent(model=FakeModel(use("look"), "done"), tools=[tool])

    with pytest.warns(DeprecationWarning, match=r"invocation_state=\{'tenant'") as caught:
        agent("go", tenant="acme")

    assert seen == ["acme"]
    assert caught[0].filename == __file__


def test_the_callers_state_is_used_by_reference():
    mine = {"a": 1}
    agent = Agent(
        model=FakeModel(use("look"), "done"), tools=[FakeTool("look", lambda c: c.invocation_state.update(b=2))]
    )
    agent("go", invocation_state=mine)

    assert mine == {"a": 1, "b": 2}


@pytest.mark.parametrize("option", OWNED)
def test_an_option_whose_plugin_is_missing_says_what_to_install(option, monkeypatch):
    monkeypatch.setattr("ropewalk.kits.hooks.activation.owner_of", lambda parameter: None)

    with pytest.raises(
        MissingPluginError, match=rf"agent\(..., {option}=...\) needs the plugin .*pip install ropewalk-"
    ):
        Agent(model=FakeModel("never"))("go", **{option: object()})


def test_an_option_that_is_none_is_not_given():
    assert str(Agent(model=FakeModel("fine"))("go", limits=None)) == "fine\n"


def test_an_option_goes_to_whichever_of_its_owners_is_active(monkeypatch):
    """Another plugin that owns it too, and is not in this agent, is no reason to refuse it."""
    seen = []

    class Mine:
        name = "limits"

        @hookimpl
        async def around_invocation(self, invocation, call_next):
            seen.append(invocation.options)
            return await call_next(invocation)

    monkeypatch.setattr("ropewalk.kits.hooks.call_options.owners_of", lambda name: ("a-limits", "limits"))
    monkeypatch.setattr("ropewalk.kits.hooks.call_options.require_owner", lambda name, wanted: "a-limits")

    Agent(model=FakeModel("fine"), plugins=["-limits", Mine()])("go", limits={"turns": 1})

    assert len(seen) == 1
