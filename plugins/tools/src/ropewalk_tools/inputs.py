"""Makes a pydantic model of a tool's parameters: the schema that the model gets, and the check of what it sends."""

from __future__ import annotations

import inspect
import math
from typing import Annotated, Any, Final

import pydantic
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.json_values import strict_json
from ropewalk_tools.parameters import Parameters

_SCALARS: Final = (str, int, float, bool)
_CONFIG: Final = pydantic.ConfigDict(extra="ignore", protected_namespaces=())
_MAPS_OF_SCHEMAS: Final = ("properties", "$defs", "patternProperties", "dependentSchemas")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_NO_SCHEMAS: Final = frozenset({"default", "const", "enum", "examples", "example"})


class InputModel:
    """The check of one tool's input.

    Attributes:
        schema: JSON schema of the input object.
    """

    __slots__ = ("_names", "_nested", "_validate", "schema")

    def __init__(self, tool_name: str, parameters: Parameters, descriptions: dict[str, str]) -> None:
        self._names: dict[str, str] = {}
        self._nested = not all(any(each is scalar for scalar in _SCALARS) for each in parameters.types.values())
        fields: dict[str, Any] = {}
        for name, parameter in parameters.all.items():
            if name == parameters.context:
                continue

            field = _field_name(name, parameters.all)
            if field != name:
                self._names[field] = name

            annotation = _described(parameters.types[name], name, field, descriptions)
            fields[field] = (annotation, _default(parameter))

        model = _model(tool_name, fields, self._names)
        self._validate = model.__pydantic_validator__.validate_python
        self.schema = _schema(model)

    def read(self, value: dict[str, Any]) -> dict[str, Any]:
        """The function's arguments by name, as the types that it declares; keys that it does not have are dropped.

        Raises:
            ValidationError: The input does not fit.
        """
        if self._nested:
            value = _owned(value, {})  # the function may write to what it gets, and the history has the input too

        values = self._validate(value).__dict__
        if not self._names:
            return values  # type: ignore[no-any-return]

        return {self._names.get(field, field): item for field, item in values.items()}


def _owned(value: Any, known: dict[int, Any]) -> Any:
    """The dicts and lists of an input as new ones; what a direct call has given besides stays what it is."""
    if type(value) is not dict and type(value) is not list:
        return value

    if id(value) in known:
        return known[id(value)]

    fresh: Any = type(value)()
    known[id(value)] = fresh
    if isinstance(value, dict):
        fresh.update({key: _owned(item, known) for key, item in value.items()})
    else:
        fresh.extend(_owned(item, known) for item in value)

    return fresh


def problems_of(error: pydantic.ValidationError) -> str:
    """What is wrong with an input, one line per field."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "\n".join(f"- {'.'.join(map(str, detail['loc'])) or 'input'}: {detail['msg']}" for detail in details)


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy of a JSON schema that is strict JSON. A bound that JSON has no number for (an infinity) is none."""
    return strict_json(_bounded(schema))  # type: ignore[no-any-return]


def _bounded(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return [_bounded(item) for item in schema]

    if not isinstance(schema, dict):
        return schema

    return {key: _bounded(value) for key, value in schema.items() if not (key in _BOUNDS and _is_endless(value))}


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _field_name(name: str, taken: dict[str, Any]) -> str:
    """The parameter's own name, unless pydantic keeps it for itself (`json`, `copy`, `_x`)."""
    if not name.startswith("_") and not hasattr(pydantic.BaseModel, name):
        return name

    field = f"p_{name.strip('_')}"
    while field in taken:
        field += "_"

    return field


def _described(annotation: Any, name: str, field: str, descriptions: dict[str, str]) -> Any:
    """The type with what the schema says about it. Text in `Annotated` goes before a Field's, then the docstring's."""
    base: Any = annotation
    extras: tuple[Any, ...] = ()
    if hasattr(annotation, "__metadata__"):
        base, extras = annotation.__origin__, annotation.__metadata__

    lead = pydantic.Field(description=descriptions.get(name, f"Parameter {name}"))
    if field != name:
        lead = pydantic.Field(description=lead.description, alias=name)

    texts = [pydantic.Field(description=extra) for extra in extras if isinstance(extra, str)][:1]
    rest = [extra for extra in extras if not isinstance(extra, str)]
    return Annotated[(base, lead, *rest, *texts)]


def _default(parameter: inspect.Parameter) -> Any:
    """The default, or an empty Field: it leaves the one of an annotated Field in force."""
    return pydantic.Field() if parameter.default is inspect.Parameter.empty else parameter.default


def _model(tool_name: str, fields: dict[str, Any], names: dict[str, str]) -> type[pydantic.BaseModel]:
    try:
        return _create(tool_name, fields)
    except Exception as error:  # noqa: BLE001 - what is wrong with a user's type can be anything
        name, cause = _culprit(tool_name, fields) or (None, error)
        where = f", parameter {names.get(name, name)!r}" if name else ""
        raise ToolDefinitionError(
            f"tool {tool_name!r}{where}: a model cannot be told its type: {_first_line(cause)}: use types that JSON can"
            " carry, or a pydantic model"
        ) from cause


def _create(tool_name: str, fields: dict[str, Any]) -> type[pydantic.BaseModel]:
    model: type[pydantic.BaseModel] = pydantic.create_model(tool_name, __config__=_CONFIG, **fields)
    model.model_json_schema(schema_generator=_Quiet)
    return model


def _culprit(tool_name: str, fields: dict[str, Any]) -> tuple[str, Exception] | None:
    """The first parameter that fails on its own, and how."""
    for name, field in fields.items():
        try:
            _create(tool_name, {name: field})
        except Exception as error:  # noqa: BLE001 - what is wrong with a user's type can be anything
            return name, error

    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


class _Quiet(GenerateJsonSchema):
    """A default that JSON cannot carry is left out of the schema, which is all there is to say about it."""

    ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012 - as the base declares it

    def encode_default(self, dflt: Any) -> Any:
        """The default as JSON; what pydantic lets pass and JSON does not (NaN, infinities) is refused here."""
        encoded = super().encode_default(dflt)
        if strict_json(encoded) != encoded:
            raise PydanticSerializationError("JSON has no such value")

        return encoded


def _schema(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=_Quiet)
    _tidy(schema)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return strict_schema(schema)


def _tidy(schema: Any) -> None:
    """Takes out the titles, which repeat the names, and the null of what may be left out anyway."""
    if isinstance(schema, list):
        for item in schema:
            _tidy(item)

    if not isinstance(schema, dict):
        return

    schema.pop("title", None)
    for key, value in schema.items():
        if key in _MAPS_OF_SCHEMAS:
            for inner in value.values():
                _tidy(inner)
        elif key not in _NO_SCHEMAS:
            _tidy(value)

    for inner in schema.get("properties", {}).values():
        _flatten_optional(inner)


def _flatten_optional(schema: Any) -> None:
    choices = schema.get("anyOf", []) if isinstance(schema, dict) else []
    others = [choice for choice in choices if choice != {"type": "null"}]
    if len(others) == len(choices) or schema.get("default", ...) is not None:
        return

    del schema["default"]
    if len(others) > 1:
        schema["anyOf"] = others
        return

    del schema["anyOf"]
    for key, value in others[0].items():
        schema.setdefault(key, value)
