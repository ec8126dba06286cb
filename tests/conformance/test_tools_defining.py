"""Tools: schemas, injected parameters and methods (conformance 50 to 57)."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from ropewalk import ToolContext, tool
from ropewalk.errors import ToolDefinitionError
from ropewalk_testing import use


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    zip: int


class Person(BaseModel):
    name: str
    address: Address
    tags: list[str] = []


def schema_of(body):
    return body.tool_spec["inputSchema"]["json"]


def keys_named(value, name):
    """How often a key appears anywhere in a JSON value."""
    if isinstance(value, dict):
        return (name in value) + sum(keys_named(item, name) for item in value.values())

    return sum(keys_named(item, name) for item in value) if isinstance(value, list) else 0


def accepts(schema, kind):
    """Whether a property's schema says that type, alone or as one of several."""
    return schema.get("type") == kind or any(option.get("type") == kind for option in schema.get("anyOf", []))


# -- schema ------------------------------------------------------------------------------------------------------


@tool
def book(
    city: str,
    nights: int,
    budget: float = 100.0,
    note: Optional[str] = None,  # noqa: UP045 - both spellings count
    room: int | None = None,
    kind: Literal["hotel", "hostel"] = "hotel",
    color: Color = Color.RED,
    stars: Annotated[int, Field(ge=1, le=5)] = 3,
    name: Annotated[str, "Who travels"] = "me",
    extras: list[str] | None = None,
) -> str:
    """Books a room.

    It may take a while.

    Args:
        city: Where to stay.
        nights: How long
            to stay.
        name: This text loses to the annotation.

    Returns:
        A booking number.
    """
    return f"{city}:{nights}:{color}"


def test_parameters_without_a_default_are_required():
    """Conformance 50."""
    schema = schema_of(book)

    assert schema["type"] == "object"
    assert sorted(schema["required"]) == ["city", "nights"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("city", "string"), ("nights", "integer"), ("budget", "number"), ("note", "string"), ("room", "integer")],
)
def test_types_are_those_of_the_annotations(name, kind):
    """Conformance 50."""
    assert accepts(schema_of(book)["properties"][name], kind)


def test_defaults_are_in_the_schema():
    """Conformance 50."""
    properties = schema_of(book)["properties"]

    assert (properties["budget"]["default"], properties["kind"]["default"]) == (100.0, "hotel")
    assert properties["color"]["default"] == "red"


def test_literals_and_enums_list_their_values():
    """Conformance 50."""
    schema = schema_of(book)

    assert schema["properties"]["kind"]["enum"] == ["hotel", "hostel"]
    assert '["red", "blue"]' in json.dumps(schema)


def test_an_annotated_text_is_the_description_and_wins_over_the_docstring():
    """Conformance 50."""
    assert schema_of(book)["properties"]["name"]["description"] == "Who travels"


def test_a_fields_limits_are_in_the_schema():
    """Conformance 50."""
    stars = schema_of(book)["properties"]["stars"]

    assert (stars["minimum"], stars["maximum"]) == (1, 5)


def test_the_schema_is_plain_json_without_titles():
    """Conformance 50."""
    schema = schema_of(book)

    assert json.loads(json.dumps(schema, allow_nan=False)) == schema
    assert keys_named(schema, "title") == 0


def test_a_parameter_called_title_is_kept():
    """Conformance 50."""

    @tool
    def publish(title: str) -> str:
        """Publishes."""
        return title

    assert list(schema_of(publish)["properties"]) == ["title"]


def test_a_tool_without_parameters_has_an_empty_object_schema():
    """Conformance 50."""

    @tool
    def ping() -> str:
        """Pings."""
        return "pong"

    schema = schema_of(ping)
    assert (schema["type"], schema.get("properties", {})) == ("object", {})
    assert not schema.get("required")


@pytest.mark.parametrize(
    ("arguments", "field"), [({"stars": 9}, "stars"), ({"kind": "tent"}, "kind"), ({"color": "x"}, "color")]
)
def test_what_the_schema_forbids_is_an_error_result_naming_the_field(
    ask, make_agent, tool_results, result_text, arguments, field
):
    """Conformance 50."""
    agent, _ = make_agent([use("book", {"city": "Rome", "nights": 2, **arguments}), "ok"], tools=[book])

    ask(agent, "go")

    (result,) = tool_results(agent.messages)
    assert result["status"] == "error"
    assert field in result_text(result)


def test_defaults_apply_and_enums_arrive_as_members(ask, make_agent, tool_results):
    """Conformance 50."""
    agent, _ = make_agent([use("book", {"city": "Rome", "nights": 2, "color": "blue"}), "ok"], tools=[book])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": f"Rome:2:{Color.BLUE}"}]


def test_docstring_arguments_become_descriptions():
    """Conformance 51."""
    properties = schema_of(book)["properties"]

    assert properties["city"]["description"] == "Where to stay."
    assert properties["nights"]["description"].split() == ["How", "long", "to", "stay."]


def test_the_description_is_the_docstring_without_its_arguments():
    """Conformance 51."""
    description = book.tool_spec["description"]

    assert description.startswith("Books a room.")
    assert "It may take a while." in description
    assert "Where to stay" not in description
    assert "Args:" not in description


def test_name_and_description_can_be_given():
    """Conformance 51."""

    @tool(name="other", description="Does it.")
    def original() -> str:
        """Docstring."""
        return "x"

    assert (original.tool_name, original.tool_spec["name"]) == ("other", "other")
    assert original.tool_spec["description"] == "Does it."


def test_a_decorated_function_can_still_be_called():
    """Conformance 51."""
    assert book("Rome", 2) == f"Rome:2:{Color.RED}"


# -- what the body gets ------------------------------------------------------------------------------------------


def test_a_nested_pydantic_parameter_arrives_as_an_instance(ask, make_agent):
    """Conformance 52 (B)."""
    got = []

    @tool
    def greet(person: Person, others: list[Person], by_name: dict[str, Person], one: Person | None = None) -> str:
        """Greets."""
        got.extend([person, person.address, *others, *by_name.values(), one])
        return "hello"

    ann = {"name": "Ann", "address": {"street": "S", "zip": "10115"}}
    arguments = {"person": ann, "others": [ann], "by_name": {"a": ann}, "one": ann}
    agent, _ = make_agent([use("greet", arguments), "ok"], tools=[greet])

    ask(agent, "go")

    assert [type(value) for value in got] == [Person, Address, Person, Person, Person]
    assert got[0].address.zip == 10115


def test_the_models_arguments_stay_as_sent_in_the_history(ask, make_agent):
    """Conformance 52 (B)."""

    @tool
    def greet(person: Person) -> str:
        """Greets."""
        person.name = "changed"
        person.tags.append("seen")
        return "hello"

    ann = {"name": "Ann", "address": {"street": "S", "zip": 1}, "tags": ["x"]}
    agent, _ = make_agent([use("greet", {"person": ann}), "ok"], tools=[greet])

    ask(agent, "go")

    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {
        "person": {"name": "Ann", "address": {"street": "S", "zip": 1}, "tags": ["x"]}
    }


def test_a_body_that_changes_its_arguments_does_not_rewrite_the_history(ask, make_agent):
    """Conformance 52 (B)."""

    @tool
    def drain(items: list[str], table: dict[str, Any]) -> str:
        """Drains."""
        items.clear()
        table.clear()
        return "empty"

    agent, _ = make_agent([use("drain", {"items": ["a"], "table": {"k": [1]}}), "ok"], tools=[drain])

    ask(agent, "go")

    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"items": ["a"], "table": {"k": [1]}}


def test_unknown_arguments_are_ignored(ask, make_agent, tool_results):
    """Conformance 52 (B)."""

    @tool
    def echo(value: str) -> str:
        """Echoes."""
        return value

    agent, _ = make_agent([use("echo", {"value": "x", "surplus": 1}), "ok"], tools=[echo])

    ask(agent, "go")

    assert tool_results(agent.messages)[0]["content"] == [{"text": "x"}]


@pytest.mark.parametrize("name", ["agent", "name", "input", "schema", "json", "model", "copy", "call", "run"])
def test_any_parameter_name_is_usable(ask, make_agent, tool_results, name):
    """Conformance 54 (B)."""
    space = {}
    exec(f"def hire({name}: str) -> str:\n    return 'hired ' + {name}\n", space)
    body = tool(space["hire"])
    agent, _ = make_agent([use("hire", {name: "Bond"}), "ok"], tools=[body])

    ask(agent, "go")

    assert schema_of(body)["properties"][name]["type"] == "string"
    assert tool_results(agent.messages)[0]["content"] == [{"text": "hired Bond"}]


def test_a_context_parameter_without_the_flag_is_a_definition_error():
    """Conformance 55."""
    with pytest.raises(ToolDefinitionError, match="peek") as caught:

        @tool
        def peek(tool_context: ToolContext) -> str:
            """Peeks."""
            return "x"

    assert isinstance(caught.value, ValueError)
    assert "context" in str(caught.value)


@pytest.mark.parametrize("parameter", ["tool_context", "ctx"])
def test_the_context_gives_tool_use_agent_and_state(ask, make_agent, parameter):
    """Conformance 56."""
    got = []

    @tool(name="peek", context=True)
    def by_flag(n: int, tool_context: ToolContext) -> str:
        """Peeks."""
        got.append(tool_context)
        return "seen"

    @tool(name="peek", context="ctx")
    def by_name(n: int, ctx: ToolContext) -> str:
        """Peeks."""
        got.append(ctx)
        return "seen"

    body = by_flag if parameter == "tool_context" else by_name
    state = {"tenant": "acme"}
    agent, _ = make_agent([use("peek", {"n": 1}, id="T1"), "ok"], tools=[body])

    ask(agent, "go", invocation_state=state)

    (context,) = got
    assert context.tool_use == {"toolUseId": "T1", "name": "peek", "input": {"n": 1}}
    assert context.agent is agent
    assert context.invocation_state is state
    assert list(schema_of(body)["properties"]) == ["n"]


def test_a_method_is_bound_to_its_instance(ask, make_agent, tool_results):
    """Conformance 57."""

    class Counter:
        def __init__(self, start):
            self.total = start

        @tool
        def bump(self, by: int) -> str:
            """Bumps."""
            self.total += by
            return str(self.total)

        @tool
        async def read(self) -> str:
            """Reads."""
            return str(self.total)

    one, two = Counter(1), Counter(100)
    turns = [use("bump", {"by": 1}), use("read", {}), "ok"]
    first, _ = make_agent(list(turns), tools=[one.bump, one.read])
    second, _ = make_agent(list(turns), tools=[two.bump, two.read])

    ask(first, "go")
    ask(second, "go")

    assert [result["content"][0]["text"] for result in tool_results(first.messages)] == ["2", "2"]
    assert [result["content"][0]["text"] for result in tool_results(second.messages)] == ["101", "101"]
    assert list(schema_of(one.bump)["properties"]) == ["by"]
    assert one.bump(5) == "7"
