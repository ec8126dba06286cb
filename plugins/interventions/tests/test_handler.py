"""What is a handler."""

from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk_interventions import Deny, InterventionHandler, Proceed


class Named(InterventionHandler):
    name = "named"


def refused(*handlers):
    with pytest.raises(ValueError, match=r"Agent\(interventions") as caught:
        Agent(callback_handler=None, interventions=list(handlers))

    return str(caught.value)


def test_methods_that_are_not_overridden_are_never_called(make_agent, danger):
    assert str(make_agent(Named())("go")) == "done\n"
    assert danger.ran == [{"path": "x"}]


def test_what_is_set_on_an_instance_is_no_override(make_agent, danger):
    quiet = Named()
    quiet.before_tool_call = lambda event: Deny("no")

    make_agent(quiet)("go")

    assert danger.ran == [{"path": "x"}]


def test_an_override_may_come_from_a_parent_class(make_agent, danger):
    class Parent(InterventionHandler):
        def before_tool_call(self, event):
            return Deny("no")

    class Child(Parent):
        name = "child"

    make_agent(Child())("go")

    assert danger.ran == []


def test_a_name_may_be_given_to_the_instance(make_agent, handler):
    class Free(InterventionHandler):
        def __init__(self, name):
            self.name = name

    make_agent(Free("a"), Free("b"))


def test_two_handlers_of_one_name_are_refused():
    assert "two handlers are named 'named'" in refused(Named(), Named())


def test_a_handler_without_a_name_is_refused():
    assert "InterventionHandler.name is None: give the handler a name" in refused(InterventionHandler())


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": 5}, "name is 5"),
        ({"on_error": "ignore"}, "on_error is 'ignore'"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"time_limit": float("nan")}, "time_limit is nan"),
        ({"time_limit": True}, "time_limit is True"),
        ({"time_limit": "5"}, "time_limit is '5'"),
    ],
)
def test_a_handler_with_a_wrong_attribute_is_refused(attributes, text):
    bad = Named()
    for name, value in attributes.items():
        setattr(bad, name, value)

    assert text in refused(bad)


@pytest.mark.parametrize("entry", [Named, "named", None, lambda event: Proceed()])
def test_what_is_no_handler_is_refused(entry):
    assert "entry 0" in refused(entry)


@pytest.mark.parametrize("value", ["named", {"named": Named()}, 5])
def test_what_is_no_list_is_refused(value):
    with pytest.raises(ValueError, match="give a list of InterventionHandlers"):
        Agent(callback_handler=None, interventions=value)


def test_the_base_proceeds_everywhere():
    base = Named()
    moments = ["invocation", "model_call", "tool_call"]
    assert {getattr(base, f"before_{moment}")(None) for moment in moments} == {Proceed()}
    assert {getattr(base, f"after_{moment}")(None) for moment in moments[1:]} == {Proceed()}
