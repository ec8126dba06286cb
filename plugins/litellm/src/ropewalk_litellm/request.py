"""One model call as arguments of `litellm.acompletion`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ropewalk.kits.json_values import strict_json
from ropewalk.model import ModelRequest
from ropewalk.types import Message, ToolSpec
from ropewalk_litellm.cache_points import TOOLS, Marks, marks_of
from ropewalk_litellm.messages import chat_messages
from ropewalk_litellm.settings import Settings
from ropewalk_litellm.signatures import takes_signatures
from ropewalk_litellm.thinking import takes_thinking

_LONGEST_NAME: Final = 64
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_WANTS_TOOLS: Final = re.compile(r"claude|^(anthropic|bedrock)/", re.IGNORECASE)


def arguments(settings: Settings, request: ModelRequest) -> dict[str, Any]:
    """The arguments of the call; the user's `client_args` and `params` as they are, what the request says on top.

    Raises:
        ModelRequestError: The conversation holds a block that cannot be sent.
    """
    specs = request.tool_specs or _former_tools(settings.model_id, request.messages)
    marks = marks_of(request.system, request.messages, tools=bool(specs), auto=settings.cache_point)
    call: dict[str, Any] = {"num_retries": 0, "max_retries": 0, **settings.client_args, **settings.params}
    signed, thinking = takes_signatures(settings.model_id), takes_thinking(settings.model_id)
    call.update(
        model=settings.model_id,
        messages=strict_json(chat_messages(request.system, request.messages, marks, signed=signed, thinking=thinking)),
        stream=settings.stream,
    )
    if settings.stream:
        call.setdefault("stream_options", {"include_usage": True})

    if specs:
        call["tools"] = strict_json(_tools(specs, marks))
        if request.tool_choice is not None and request.tool_specs:
            call["tool_choice"] = _tool_choice(request.tool_choice)
    else:
        call.pop("tool_choice", None)

    if request.output_schema is not None:
        call["response_format"] = strict_json(response_format(request.output_schema))

    return call


def _tools(specs: Sequence[ToolSpec], marks: Marks) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = [
        {
            "type": "function",
            "function": {
                "name": spec["name"],
                "description": spec["description"],
                "parameters": spec["inputSchema"]["json"],
            },
        }
        for spec in specs
    ]
    tools[-1].update(marks.at(TOOLS, 0))
    return tools


def _former_tools(model_id: str, messages: Sequence[Message]) -> tuple[ToolSpec, ...]:
    """Stand-ins for tools that the conversation used, for providers that refuse tool calls without any tools."""
    if not _WANTS_TOOLS.search(model_id):
        return ()

    uses = (block["toolUse"] for message in messages for block in message["content"] if "toolUse" in block)
    names = dict.fromkeys(use["name"] for use in uses)
    schema = {"json": {"type": "object", "properties": {}}}
    return tuple(
        {"name": name, "description": "Not available any more: do not use it.", "inputSchema": schema} for name in names
    )


def _tool_choice(choice: dict[str, Any]) -> Any:
    if "tool" in choice:
        return {"type": "function", "function": {"name": choice["tool"]["name"]}}

    return "required" if "any" in choice else "auto"


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """Holds the answer to a schema; strictly where the schema says everything that strictness asks for."""
    name = _NO_NAME.sub("_", str(schema.get("title") or "answer"))[:_LONGEST_NAME] or "answer"
    strict = {"strict": True} if _is_strict(schema) else {}
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, **strict}}


def _is_strict(schema: Any) -> bool:
    """Whether every object in the schema is closed and requires all that it has."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))

    if not isinstance(schema, dict):
        return True

    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
            return False

        if set(schema.get("required", ())) != set(properties):
            return False

    return all(map(_is_strict, schema.values()))
