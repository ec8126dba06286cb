"""An output model as the plugin needs it: name, schema, validation."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, final

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from ropewalk.types import ToolSpec
from ropewalk_structured.errors import OutputModelError
from ropewalk_structured.names import tool_name_of
from ropewalk_structured.repair import mended

REMEMBERED: Final = 64
"""How many output models a process keeps the schema of."""

_MOST_REPAIRS: Final = 4  # a list in a text in a list in a text: nobody has seen more
_INTRODUCTION: Final = (
    "IMPORTANT: This StructuredOutputTool should only be invoked as the last and final tool, "
    "once everything that it asks for is known."
)
_KEY: Final = "value"


class _Schema(GenerateJsonSchema):
    """Without a title per field, which only repeats the field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - overrides
        return False


@final
class Target:
    """One output model.

    Providers take only objects as a tool's input, so what is none (a list, a union, a plain type) stands in an
    object under the key `value`.

    Attributes:
        name: The name of the tool that stands for it.
        schema: The JSON schema of an answer, an object.
        spec: What models are told.

    Raises:
        OutputModelError: It is nothing that pydantic validates and has a schema for.
    """

    __slots__ = ("_adapter", "_wrapped", "name", "schema", "spec")

    def __init__(self, model: Any) -> None:
        try:
            if isinstance(model, str | dict):  # pydantic would look for a class of that name, or take it for a schema
                raise TypeError(f"{type(model).__name__} is no type")  # noqa: TRY301 - told as all the others

            self._adapter: TypeAdapter[Any] = TypeAdapter(model)
            schema = _inlined(self._adapter.json_schema(schema_generator=_Schema))
        except Exception as error:  # pydantic's many kinds, and those of hooks in the model
            raise OutputModelError(
                f"structured_output_model={model!r:.200} cannot be used: {_first_line(error)}: "
                "give a pydantic model, or a type that pydantic has a JSON schema for"
            ) from error

        self._wrapped = schema.get("type") != "object"
        self.name = tool_name_of(model)
        self.schema = _wrapped(schema) if self._wrapped else schema
        self.spec: ToolSpec = {
            "name": self.name,
            "description": "\n".join(filter(None, [_INTRODUCTION, schema.get("description")])),
            "inputSchema": {"json": self.schema},
        }

    def validate(self, given: dict[str, Any]) -> Any:
        """The output for an answer, which is not written to; lists and objects sent as text are parsed.

        Raises:
            ValidationError: The answer does not fit.
            Exception: Whatever a validator of the output model raises.
        """
        value: Any = given[_KEY] if self._wrapped and given.keys() == {_KEY} else given
        for _ in range(_MOST_REPAIRS):
            try:
                return self._validated(value)
            except ValidationError as error:
                better = mended(value, error.errors(include_url=False, include_context=False))
                if better is None:
                    raise

                value = better

        return self._validated(value)

    def _validated(self, value: Any) -> Any:
        # As JSON, which is what it was: strict models take a date from a text then, and from nothing else.
        return self._adapter.validate_json(json.dumps(value))


def target_of(model: Any) -> Target:
    """The target of an output model, made once.

    Raises:
        OutputModelError: It is no output model.
    """
    try:
        hash(model)
    except TypeError:  # an alias with unhashable metadata
        return Target(model)

    return _remembered(model)


@lru_cache(maxsize=REMEMBERED, typed=True)
def _remembered(model: Any) -> Target:
    return Target(model)


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without a reference at its top, which recursive models have and providers refuse."""
    if "$ref" not in schema:
        return schema

    definitions = schema["$defs"]
    found = definitions[schema["$ref"].rpartition("/")[2]]
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", "properties": {_KEY: inner}, "required": [_KEY], **definitions}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
