"""Builds the JSON schema that a reply is held to, in the dialect that llama.cpp turns into a grammar.

That dialect has no boolean schemas, no reference to the root, no escapes in references and few patterns; what it
ignores (`not`, `if`, `uniqueItems` ...) is left to the tool's own validation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ropewalk_local.errors import SchemaRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ropewalk.types import ToolChoice, ToolSpec

JsonSchema = dict[str, Any]

_KEPT: Final = frozenset(
    {
        "additionalProperties", "allOf", "anyOf", "const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
        "items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "oneOf", "pattern",
        "prefixItems", "properties", "required", "type",
    }
)  # fmt: skip
_LISTS_OF_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SIMPLE_PATTERN: Final = re.compile(r"\^(?:[^\\(]|\((?!\?)|\\[^a-zA-Z0-9])*\$")
_RANGES: Final = (("minLength", "maxLength"), ("minItems", "maxItems"))
_REPEATED: Final = re.compile(r"\{[0-9,]*[0-9]{4}")  # a thousand times and more
# Beyond these the runtime refuses the schema, or has no number for it.
_AT_LEAST: Final = frozenset({"minItems", "minLength"})
_MOST_REPEATED: Final = 1000
_BOUNDS: Final = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"})
_LARGEST: Final = 2**53
_OUTPUT: Final = "the output"


def _is_simple(pattern: str) -> bool:
    """Whether the runtime can turn a pattern into a grammar; it takes one byte of UTF-8 for a character."""
    if not pattern.isascii() or _REPEATED.search(pattern) or not _SIMPLE_PATTERN.fullmatch(pattern):
        return False

    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False

    return True


class _Dialect:
    """Rewrites one schema; what it refers to is moved into definitions under names of its own."""

    def __init__(self, root: Any, owner: str, prefix: str, definitions: JsonSchema) -> None:
        self._root = root
        self._owner = owner
        self._prefix = prefix
        self._definitions = definitions
        self._names: dict[str, str] = {}

    def rewrite(self, schema: Any) -> JsonSchema:
        if schema is True:
            return {}

        if not isinstance(schema, dict):
            raise SchemaRefusedError(self._owner, f"{schema!r} is no schema that a value can match")

        if "$ref" in schema:
            return {"$ref": self._refer(str(schema["$ref"]))}

        for least, most in _RANGES:
            if type(schema.get(least)) is type(schema.get(most)) is int and schema[least] > schema[most]:
                # the runtime would look for such a value for ever
                raise SchemaRefusedError(self._owner, f"{least} {schema[least]} is above {most} {schema[most]}")

        return {key: self._keyword(key, value) for key, value in schema.items() if self._keeps(key, value)}

    def _keeps(self, key: str, value: Any) -> bool:
        if key == "pattern":
            return isinstance(value, str) and _is_simple(value)

        if key in _AT_LEAST:
            return type(value) is int and value <= _MOST_REPEATED

        if key in _BOUNDS:
            return type(value) in (int, float) and abs(value) <= _LARGEST

        if key == "items" and value is False:  # nothing beyond prefixItems, which the dialect takes for granted
            return False

        return key in _KEPT

    def _keyword(self, key: str, value: Any) -> Any:
        if key == "properties" and isinstance(value, dict):
            return {name: self.rewrite(schema) for name, schema in value.items() if schema is not False}

        if key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            return [self.rewrite(schema) for schema in value if schema is not False]

        if key == "items" and isinstance(value, list):
            return [self.rewrite(schema) for schema in value]

        if key == "items" or (key == "additionalProperties" and not isinstance(value, bool)):
            return self.rewrite(value)

        return value

    def _refer(self, ref: str) -> str:
        if ref not in self._names:
            name = f"{self._prefix}{len(self._names)}"
            self._names[ref] = name  # before the look inside: schemas may be recursive
            self._definitions[name] = self.rewrite(self._resolve(ref))
            self._check_ring(name, ref)

        return f"#/$defs/{self._names[ref]}"

    def _check_ring(self, name: str, ref: str) -> None:
        """Refuses what refers to nothing but itself."""
        passed: set[str] = set()
        each = name
        while self._definitions.get(each, {}).keys() == {"$ref"}:
            if each in passed:
                raise SchemaRefusedError(self._owner, f"the reference {ref} leads back to itself")

            passed.add(each)
            each = self._definitions[each]["$ref"].rpartition("/")[2]

    def _resolve(self, ref: str) -> Any:
        if not ref.startswith("#"):
            raise SchemaRefusedError(self._owner, f"the reference {ref} leads out of the schema")

        found = self._root
        for step in ref[1:].split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise SchemaRefusedError(self._owner, f"the reference {ref} leads nowhere") from error

        return found


def portable(schema: Any, owner: str, prefix: str, definitions: JsonSchema) -> JsonSchema:
    """The schema in llama.cpp's dialect.

    Args:
        schema: Any JSON schema.
        owner: Whose it is, for errors.
        prefix: Start of the names of its definitions.
        definitions: Gets them.

    Raises:
        SchemaRefusedError: A reference cannot be followed, or nothing can match.
    """
    return _Dialect(schema, owner, prefix, definitions).rewrite(schema)


def _arguments_schema(spec: ToolSpec, number: int, definitions: JsonSchema) -> JsonSchema:
    schema = portable(spec["inputSchema"].get("json") or {}, f"the tool {spec['name']!r}", f"t{number}_", definitions)
    if "$ref" in schema:
        return schema

    # Without this a model invents arguments that the tool does not have.
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {**closed, **schema, "type": "object"}


def _reply_object(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def chosen_tools(specs: Sequence[ToolSpec], choice: ToolChoice | None) -> tuple[tuple[ToolSpec, ...], bool]:
    """The tools that the model may ask for now, and whether it may answer instead.

    Raises:
        SchemaRefusedError: The choice names a tool that is not on offer.
    """
    if not specs or not choice or "auto" in choice:
        return tuple(specs), True

    if "tool" not in choice:
        return tuple(specs), False

    name = choice["tool"]["name"]
    chosen = tuple(spec for spec in specs if spec["name"] == name)
    if not chosen:
        raise SchemaRefusedError(f"the tool {name!r}", "the tool choice names it and the request does not offer it")

    return chosen, False


def reply_schema(
    specs: Sequence[ToolSpec], choice: ToolChoice | None, output_schema: Mapping[str, Any] | None
) -> JsonSchema | None:
    """The schema of the whole reply, or None when any text will do.

    Args:
        specs: The tools on offer.
        choice: Whether and which tool must be used.
        output_schema: What the answer must match.
    """
    definitions: JsonSchema = {}
    if output_schema is None:
        answer: JsonSchema = {"type": "string"}
    else:
        answer = portable(output_schema, _OUTPUT, "o_", definitions)

    if not specs:
        return None if output_schema is None else _with(answer, definitions)

    tools, may_answer = chosen_tools(specs, choice)
    options = [
        _reply_object({"tool": {"const": spec["name"]}, "arguments": _arguments_schema(spec, number, definitions)})
        for number, spec in enumerate(tools)
    ]
    if may_answer:
        options.append(_reply_object({"answer": answer}))

    return _with({"anyOf": options}, definitions)


def _with(schema: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    return {**schema, "$defs": definitions} if definitions else schema


_WHERE: Final = re.compile(r"JSON schema error at (#[^:]*): (.*)", re.DOTALL)
_OPTION: Final = re.compile(r"#/anyOf/(\d+)|#/\$defs/t(\d+)_")


def refusal(message: str, specs: Sequence[ToolSpec], choice: ToolChoice | None) -> SchemaRefusedError | None:
    """The runtime's complaint about a schema as an error that names its owner; None for other complaints."""
    found = _WHERE.search(message)
    if found is None:
        return None

    tools, _ = chosen_tools(specs, choice)
    option = _OPTION.match(found[1])
    number = int(option[1] or option[2]) if option else len(tools)
    owner = f"the tool {tools[number]['name']!r}" if number < len(tools) else _OUTPUT
    return SchemaRefusedError(owner, f"{found[2].strip()} (at {found[1]})")
