from __future__ import annotations

import pytest

from ropewalk.errors import ToolDefinitionError
from ropewalk_local.errors import SchemaRefusedError
from ropewalk_local.schema import portable, refusal, reply_schema


def rewritten(schema):
    definitions = {}
    return portable(schema, "the tool 't'", "t0_", definitions), definitions


def call_of(name, arguments):
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "arguments": arguments},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def closed(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def test_no_tools_and_no_output_schema_is_plain_chat():
    assert reply_schema((), None, None) is None
    assert reply_schema((), {"any": {}}, None) is None


def test_a_reply_is_one_of_the_tools_or_an_answer(spec):
    schema = reply_schema((spec("add", a={"type": "integer"}), spec("stop")), None, None)

    assert schema == {
        "anyOf": [call_of("add", closed(a={"type": "integer"})), call_of("stop", closed()), ANSWER],
    }


def test_choice_any_leaves_out_the_answer(spec):
    schema = reply_schema((spec("add"), spec("stop")), {"any": {}}, None)

    assert schema == {"anyOf": [call_of("add", closed()), call_of("stop", closed())]}


def test_choice_of_a_tool_leaves_it_alone(spec):
    schema = reply_schema((spec("add"), spec("stop")), {"tool": {"name": "stop"}}, None)

    assert schema == {"anyOf": [call_of("stop", closed())]}


def test_choice_auto_changes_nothing(spec):
    tools = (spec("add"),)

    assert reply_schema(tools, {"auto": {}}, None) == reply_schema(tools, None, None)


def test_the_choice_of_a_tool_that_is_not_offered_is_refused(spec):
    with pytest.raises(SchemaRefusedError, match="the tool 'nope' cannot be turned"):
        reply_schema((spec("add"),), {"tool": {"name": "nope"}}, None)


def test_an_output_schema_alone_is_the_reply():
    schema = {"title": "Point", "type": "object", "properties": {"x": {"type": "integer", "title": "X"}}}

    assert reply_schema((), None, schema) == {"type": "object", "properties": {"x": {"type": "integer"}}}


def test_an_output_schema_beside_tools_shapes_the_answer(spec):
    output = {"$ref": "#/$defs/P", "$defs": {"P": {"type": "integer"}}}

    schema = reply_schema((spec("add"),), None, output)

    assert schema["anyOf"][1]["properties"] == {"answer": {"$ref": "#/$defs/o_0"}}
    assert schema["$defs"] == {"o_0": {"type": "integer"}}


def test_definitions_of_two_tools_do_not_mix(spec):
    first, second = spec("one", v={"$ref": "#/$defs/V"}), spec("two", v={"$ref": "#/$defs/V"})
    first["inputSchema"]["json"]["$defs"] = {"V": {"type": "string"}}
    second["inputSchema"]["json"]["$defs"] = {"V": {"type": "integer"}}

    schema = reply_schema((first, second), None, None)

    assert schema["$defs"] == {"t0_0": {"type": "string"}, "t1_0": {"type": "integer"}}
    assert schema["anyOf"][1]["properties"]["arguments"]["properties"] == {"v": {"$ref": "#/$defs/t1_0"}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, {}),
        ({}, {}),
        ({"type": "string", "title": "T", "examples": ["a"], "x-own": 1, "default": "a"}, {"type": "string"}),
        ({"properties": {"title": True, "gone": False}}, {"properties": {"title": {}}}),
        ({"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "^[a-z]+$"}),
        ({"type": "string", "pattern": "[a-z]+"}, {"type": "string"}),
        ({"type": "string", "pattern": r"^\d+$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^(?=a)b$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^\u00e9+$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^(a$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^[a$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^a{1,1000}$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^a{1,999}$"}, {"type": "string", "pattern": "^a{1,999}$"}),
        ({"type": "string", "minLength": 1000}, {"type": "string", "minLength": 1000}),
        ({"type": "string", "minLength": 1001}, {"type": "string"}),
        ({"type": "array", "minItems": 1001, "maxItems": 5000}, {"type": "array", "maxItems": 5000}),
        ({"minimum": -(2**53), "maximum": 2.5}, {"minimum": -(2**53), "maximum": 2.5}),
        ({"minimum": -(10**30), "exclusiveMaximum": 1e30}, {}),
        ({"exclusiveMinimum": True}, {}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        ({"not": {"type": "string"}}, {}),
        ({"prefixItems": [True], "items": False}, {"prefixItems": [{}]}),
        ({"items": {"type": "integer", "title": "T"}}, {"items": {"type": "integer"}}),
        ({"items": [{"type": "integer", "title": "T"}]}, {"items": [{"type": "integer"}]}),
        ({"additionalProperties": {"type": "integer", "title": "T"}}, {"additionalProperties": {"type": "integer"}}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"anyOf": [{"type": "null"}, False, True]}, {"anyOf": [{"type": "null"}, {}]}),
        ({"enum": [{"title": "kept"}]}, {"enum": [{"title": "kept"}]}),
    ],
)
def test_a_schema_is_put_into_the_dialect(schema, expected):
    assert rewritten(schema) == (expected, {})


def test_a_recursive_schema_ends():
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}

    schema, definitions = rewritten(tree)

    inner = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/t0_0"}}}}
    assert (schema, definitions) == (inner, {"t0_0": inner})


@pytest.mark.parametrize("ref", ["#/$defs/A~1B", "#/%24defs/A~1B", "#/anyOf/0"])
def test_references_are_followed_as_json_pointers(ref):
    root = {"$ref": ref, "$defs": {"A/B": {"type": "integer"}}, "anyOf": [{"type": "integer"}]}

    assert rewritten(root) == ({"$ref": "#/$defs/t0_0"}, {"t0_0": {"type": "integer"}})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "https://example.com/a.json"}, "leads out of the schema"),
        ({"$ref": "#/$defs/nope"}, "#/\\$defs/nope leads nowhere"),
        ({"anyOf": [], "$ref": "#/anyOf/0"}, "leads nowhere"),
        (False, "no schema that a value can match"),
        ({"additionalProperties": 5}, "5 is no schema"),
        ({"minLength": 5, "maxLength": 2}, "minLength 5 is above maxLength 2"),
        ({"minItems": 5, "maxItems": 2}, "minItems 5 is above maxItems 2"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "#/\\$defs/A leads back to itself"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}, "back to itself"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_tools_name(schema, reason):
    with pytest.raises(SchemaRefusedError, match=f"the tool 't' cannot be turned into a grammar: .*{reason}") as caught:
        rewritten(schema)

    assert isinstance(caught.value, ToolDefinitionError)
    assert caught.value.owner == "the tool 't'"


def test_a_tool_without_declared_arguments_takes_any_object(spec):
    free = {"name": "free", "description": "d", "inputSchema": {"json": {}}}

    assert reply_schema((free,), {"any": {}}, None) == {"anyOf": [call_of("free", {"type": "object"})]}


@pytest.mark.parametrize(
    ("place", "owner"),
    [
        ("#/anyOf/1/properties/arguments/properties/x", "the tool 'two'"),
        ("#/$defs/t0_3", "the tool 'one'"),
        ("#/anyOf/2/properties/answer", "the output"),
        ("#/$defs/o_0", "the output"),
        ("#", "the output"),
    ],
)
def test_the_runtimes_complaint_is_given_its_owner(spec, place, owner):
    error = refusal(f"No parser: JSON schema error at {place}: unrecognized type odd", (spec("one"), spec("two")), None)

    assert error.owner == owner
    assert "unrecognized type odd" in str(error)


def test_other_complaints_of_the_runtime_are_left_alone(spec):
    assert refusal("no memory", (spec("one"),), None) is None
