"""Renders a request as the plain chat that a small model understands."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from ropewalk.kits.json_values import strict_json
from ropewalk_local.answer import reply_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropewalk.model import ModelRequest
    from ropewalk.types import ContentBlock, Message, ToolResult, ToolSpec

_log = logging.getLogger("ropewalk.local")
ChatMessage = dict[str, str]

_INSTRUCTIONS: Final = """\
You solve tasks with tools. Each of your replies is one JSON object:
{"tool": NAME, "arguments": {...}} to call a tool, or {"answer": TEXT} to answer the user.
Take one step at a time: call a tool, read its result, then call the next tool or answer. Use what the results say; \
never guess what a tool can tell. Copy names and formulas exactly as they are written. If no tool is needed, answer at \
once."""

# The first one shows to search for a definition, to tell it from its like, to take several steps, and to keep brackets.
# They stand in the system prompt, after the tools: as turns of the chat they teach the smallest models more, but the
# others take them for what the user has said.
_EXAMPLES: Final = """\
Examples with other tools and another user:
User: Find the file under src/ that defines the harbour class. What is twice its words more than todo.txt has?
You: {"tool": "search_files", "arguments": {"text": "class Harbour", "folder": "src"}}
Result of search_files: src/__init__.py:2: from town import Harbour
src/ship.py:7: class HarbourPilot:
src/town.py:3: class Harbour(Place):
You: {"tool": "count_words", "arguments": {"path": "src/town.py"}}
Result of count_words: 212
You: {"tool": "count_words", "arguments": {"path": "todo.txt"}}
Result of count_words: 90
You: {"tool": "calculate", "arguments": {"formula": "(212 - 90) * 2"}}
Result of calculate: 244
You: {"answer": "src/town.py defines the class Harbour. It has 122 words more, and twice that is 244."}
User: Hi!
You: {"answer": "Hello! How can I help?"}
User: Who wrote Hamlet? Answer with a rhyme.
You: {"answer": "It was Shakespeare's pen that wrote Hamlet then."}"""

_GO_ON: Final = "Go on where you stopped."
_TEXT_FORMATS: Final = frozenset({"txt", "md", "csv", "html"})


class Renderer:
    """Renders requests for one model file.

    Args:
        special_tokens: Texts that the tokenizer would take for control tokens, such as `<|im_end|>`. A user or a
            tool that writes one must not be able to end its turn and speak in another role.
    """

    def __init__(self, special_tokens: Iterable[str] = ()) -> None:
        tokens = sorted(set(special_tokens), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, tokens))) if tokens else None

    def chat(self, request: ModelRequest) -> list[ChatMessage]:
        """The request's messages in roles `system`, `user` and `assistant`; neighbours differ in role."""
        turns: list[ChatMessage] = []
        system = "\n\n".join(self._system_parts(request))
        if system:
            turns.append({"role": "system", "content": self._harmless(system)})

        names: dict[str, str] = {}
        messages = list(request.messages)
        for at, message in enumerate(messages):
            following = messages[at + 1] if at + 1 < len(messages) else None
            if message["role"] == "assistant":
                self._assistant(turns, message, following, names)
            else:
                split = at > 0 and len(_uses(messages[at - 1])) > 1
                self._user(turns, message, names, with_results=not split)

        # A grammar begins with a reply, so the runtime cannot hold the rest of one to it.
        if turns[-1]["role"] == "assistant" and (request.tool_specs or request.output_schema is not None):
            turns.append({"role": "user", "content": _GO_ON})

        return turns

    def _system_parts(self, request: ModelRequest) -> list[str]:
        parts = [block["text"] for block in request.system if block.get("text")]
        if request.tool_specs:
            tools = "\n".join(map(describe_tool, request.tool_specs))
            parts += [_INSTRUCTIONS, f"Your tools:\n{tools}", _EXAMPLES]

        return parts

    def _add(self, turns: list[ChatMessage], role: str, text: str) -> None:
        """Adds a turn, or extends the last one: chat templates want the roles to alternate."""
        text = self._harmless(text)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += "\n" + text
        else:
            turns.append({"role": role, "content": text})

    def _assistant(
        self, turns: list[ChatMessage], message: Message, following: Message | None, names: dict[str, str]
    ) -> None:
        """One call per turn is what the model is asked for, so parallel calls are shown as calls one after another."""
        uses = _uses(message)
        text = "\n".join(filter(None, map(_plain, message["content"])))
        if text and not uses:
            self._add(turns, "assistant", text)

        results = {result["toolUseId"]: result for result in _results(following)} if len(uses) > 1 else {}
        for number, use in enumerate(uses):
            names[use["toolUseId"]] = use["name"]
            call = reply_text(use["name"], strict_json(use["input"]))
            self._add(turns, "assistant", f"{text}\n{call}" if text and number == 0 else call)
            if use["toolUseId"] in results:
                self._add(turns, "user", render_result(results[use["toolUseId"]], use["name"]))

    def _user(self, turns: list[ChatMessage], message: Message, names: dict[str, str], *, with_results: bool) -> None:
        for block in message["content"]:
            if "toolResult" in block:
                result = block["toolResult"]
                text = render_result(result, names.get(result["toolUseId"], "a tool")) if with_results else ""
            else:
                text = _plain(block)

            if text:
                self._add(turns, "user", text)

    def _harmless(self, text: str) -> str:
        if self._special is None:
            return text

        return self._special.sub(lambda match: f"{match.group()[0]} {match.group()[1:]}", text)


def _uses(message: Message) -> list[Any]:
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]


def _results(message: Message | None) -> list[ToolResult]:
    return [block["toolResult"] for block in message["content"] if "toolResult" in block] if message else []


def _plain(block: ContentBlock) -> str:
    """What a model that only reads text gets of a block."""
    if "text" in block:
        return block["text"]

    if "guardContent" in block:
        return str(block["guardContent"].get("text", {}).get("text", ""))

    if "citationsContent" in block:
        return "".join(piece.get("text", "") for piece in block["citationsContent"].get("content", ()))

    return _attachment(block)


def _attachment(piece: Any) -> str:
    document = piece.get("document")
    if document is not None:
        data = document.get("source", {}).get("bytes")
        if document.get("format") in _TEXT_FORMATS and isinstance(data, bytes):
            return f"[document {document.get('name', '')}]\n{data.decode(errors='replace')}"

    for kind in ("image", "document", "video"):
        if kind in piece:
            _log.warning("a local model reads text only: it is told of the %s, and does not see it", kind)
            return f"[{kind}: cannot be shown to this model]"

    return ""


def render_result(result: ToolResult, name: str) -> str:
    """A tool's result as the text of a user turn."""
    texts = []
    for piece in result["content"]:
        if "text" in piece:
            texts.append(piece["text"])
        elif "json" in piece:
            texts.append(json.dumps(piece["json"], ensure_ascii=False, default=str))
        else:
            texts.append(_attachment(piece))

    word = "Error" if result.get("status") == "error" else "Result"
    return f"{word} of {name}: " + ("\n".join(filter(None, texts)) or "(nothing)")


# -- tools -------------------------------------------------------------------------------------------------------


def describe_tool(spec: ToolSpec) -> str:
    """A tool in a few lines: name, what it does, its arguments. Short, since each token costs a small model time."""
    schema = spec["inputSchema"].get("json") or {}
    required = schema.get("required", ())
    lines = [f"- {spec['name']}: {' '.join(spec.get('description', '').split())}"]
    for name, argument in schema.get("properties", {}).items():
        lines.append(f"  {name} ({_kind(argument)}{'' if name in required else ', optional'})" + _about(argument))

    return "\n".join(lines)


def _kind(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"

    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])

    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(map(_kind, schema[key])))

    if "$ref" in schema:
        return "object"

    kind = schema.get("type", "any")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else _items(schema, str(kind))


def _items(schema: dict[str, Any], kind: str) -> str:
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"array of {_kind(schema['items'])}"

    if kind == "object" and schema.get("properties"):
        return "object with " + ", ".join(schema["properties"])

    return kind


def _about(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""

    text = " ".join(str(schema.get("description", "")).split())
    default = schema.get("default")
    notes = [text] if text else []
    if default is not None:
        notes.append(f"default {json.dumps(default, ensure_ascii=False, default=str)}")

    return f": {'; '.join(notes)}" if notes else ""
