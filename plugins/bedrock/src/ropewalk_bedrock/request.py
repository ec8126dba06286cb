"""One model call as the arguments of Converse, ConverseStream and CountTokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ropewalk.kits.json_values import clean_text, strict_json
from ropewalk.kits.messages.rules import BLANK
from ropewalk.model import ModelRequest
from ropewalk.types import ToolSpec
from ropewalk_bedrock import caching, guardrails, windows
from ropewalk_bedrock.blocks import Block, BlockWriter
from ropewalk_bedrock.settings import Settings

_GEOGRAPHY: Final = re.compile(r"^(us|us-gov|eu|apac|au|ca|jp|global)\.(?=\w+\.)")
_PROFILE: Final = re.compile(r"^arn:\S+:inference-profile/")
_COUNTED: Final = ("messages", "system", "toolConfig", "additionalModelRequestFields")


def converse_arguments(request: ModelRequest, settings: Settings) -> dict[str, Any]:
    """The arguments of `converse` or, with `streaming`, `converse_stream`; nothing of the request is written to."""
    model_id = settings.model_id
    messages = _messages(request, settings)
    system = _system(request, settings)
    tools = _tools(request, settings)
    if _caches(settings) and settings.cache_config is not None:
        caching.set_tail(messages, settings.cache_config)

    for message in messages:
        message["content"] = caching.drop_misplaced(message["content"]) or [{"text": BLANK}]

    system = caching.drop_misplaced(system)
    caching.limit(tools, system, messages)
    arguments: dict[str, Any] = {"modelId": model_id, "messages": messages}
    if system:
        arguments["system"] = system

    if tools:
        arguments["toolConfig"] = {"tools": tools}
        if request.tool_choice and request.tool_specs:
            arguments["toolConfig"]["toolChoice"] = request.tool_choice

    arguments.update(_options(request, settings))
    if settings.additional_args:
        arguments.update(settings.additional_args)

    return arguments


def count_arguments(request: ModelRequest, settings: Settings) -> dict[str, Any]:
    """The arguments of `count_tokens`."""
    arguments = converse_arguments(request, settings)
    counted = {key: arguments[key] for key in _COUNTED if key in arguments}
    # Tokens are counted by the model itself, not by a profile that spreads its calls over regions.
    model_id = _GEOGRAPHY.sub("", _PROFILE.sub("", settings.model_id))
    return {"modelId": model_id, "input": {"converse": counted}}


def _caches(settings: Settings) -> bool:
    config = settings.cache_config
    return config is not None and (config.strategy == "anthropic" or windows.caches_prompts(settings.model_id))


# -- the conversation --------------------------------------------------------------------------------------------


def _messages(request: ModelRequest, settings: Settings) -> list[Block]:
    status = settings.include_tool_result_status
    with_status = windows.takes_result_status(settings.model_id) if status == "auto" else bool(status)
    signed = windows.needs_signatures(settings.model_id)
    thinks = windows.takes_reasoning(settings.model_id)
    writer = BlockWriter(with_status=with_status, with_reasoning=thinks, signed_only=signed)
    messages: list[Block] = []
    for message in request.messages:
        written = (writer.write(block) for block in message["content"])
        content = [block for block in written if block is not None]
        while signed and content and "reasoningContent" in content[-1]:
            content.pop()

        messages.append({"role": message["role"], "content": content})

    if settings.guardrail_id is not None and settings.guardrail_latest_message:
        guardrails.guard_latest(messages)

    return messages


def _system(request: ModelRequest, settings: Settings) -> list[Block]:
    writer = BlockWriter(with_status=False, with_reasoning=False)
    written = (writer.write(block) for block in request.system)
    system = [block for block in written if block is not None]
    if settings.cache_prompt is not None and system:
        system.append(caching.point_of(settings.cache_prompt))

    return system


# -- tools -------------------------------------------------------------------------------------------------------


def _tools(request: ModelRequest, settings: Settings) -> list[Block]:
    tools = [_tool(spec, settings.strict_tools) for spec in request.tool_specs]
    if not tools:
        # Converse refuses tool uses in the conversation when the request has no tools.
        tools = [_tool(_former(name), None) for name in _used_names(request)]

    if settings.cache_tools is not None and tools:
        tools.append(caching.point_of(settings.cache_tools))

    return tools


def _tool(spec: ToolSpec, strict: bool | None) -> Block:
    name = spec["name"]
    schema = strict_json(spec["inputSchema"]["json"])
    if schema.get("type") != "object":
        schema = {**schema, "type": "object"}

    written: Block = {
        "name": name,
        "description": clean_text(spec.get("description") or "").strip() or name,
        "inputSchema": {"json": schema},
    }
    if strict is not None:
        written["strict"] = strict

    return {"toolSpec": written}


def _former(name: str) -> ToolSpec:
    schema = {"type": "object", "properties": {}}
    return {"name": name, "description": "Not available any more.", "inputSchema": {"json": schema}}


def _used_names(request: ModelRequest) -> Iterable[str]:
    """The names of the tools that the conversation speaks of, in order; one stands in for results without a use."""
    names: dict[str, None] = {}
    writer = BlockWriter(with_status=False, with_reasoning=False)
    results = False
    for message in request.messages:
        for block in message["content"]:
            if "toolUse" in block:
                written = writer.write(block) or {}
                names[written["toolUse"]["name"]] = None

            results = results or "toolResult" in block

    return names or (("former_tool",) if results else ())


# -- options -----------------------------------------------------------------------------------------------------


def _options(request: ModelRequest, settings: Settings) -> dict[str, Any]:
    inference = {
        "maxTokens": settings.max_tokens,
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "stopSequences": settings.stop_sequences,
    }
    options: dict[str, Any] = {
        "inferenceConfig": {key: value for key, value in inference.items() if value is not None},
        "guardrailConfig": guardrails.config_of(settings, streaming=settings.streaming),
        "additionalModelRequestFields": _model_fields(request, settings.additional_request_fields),
        "additionalModelResponseFieldPaths": settings.additional_response_field_paths,
        "serviceTier": {"type": settings.service_tier} if settings.service_tier else None,
        "outputConfig": _output(request.output_schema),
    }
    return {key: value for key, value in options.items() if value}


def _model_fields(request: ModelRequest, fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The model's own fields. Claude refuses to be forced to a tool while it thinks: it answers without thinking."""
    if not fields:
        return None

    if request.tool_choice and "auto" not in request.tool_choice:
        return {key: value for key, value in fields.items() if key != "thinking"}

    return dict(fields)


def _output(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None

    definition = {"name": "answer", "schema": json.dumps(strict_json(schema))}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}
