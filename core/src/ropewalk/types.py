"""Shapes of messages, content blocks, tool specs and stream events.

They are the shapes of the Bedrock Converse API (docs.aws.amazon.com/bedrock, API_runtime_Message), which every
model plugin translates to and from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Role: TypeAlias = Literal["user", "assistant"]
ToolResultStatus: TypeAlias = Literal["success", "error"]
StopReason: TypeAlias = str
"""Why a run or a model turn stopped. Known values are in `STOP_REASONS`; a provider's own word passes through."""

STOP_REASONS: frozenset[str] = frozenset(
    {
        "cancelled",
        "checkpoint",
        "content_filtered",
        "end_turn",
        "guardrail_intervened",
        "interrupt",
        "limit_output_tokens",
        "limit_total_tokens",
        "limit_turns",
        "max_tokens",
        "stop_sequence",
        "tool_use",
    }
)


class ToolUse(TypedDict):
    """One request of the model to run a tool; `input` is a JSON object, `signature` the provider's own, if any."""

    toolUseId: str
    name: str
    input: dict[str, Any]
    signature: NotRequired[str]


class ToolResultContent(TypedDict, total=False):
    """One piece of a tool's answer; exactly one key is set."""

    text: str
    json: Any
    image: dict[str, Any]
    document: dict[str, Any]
    video: dict[str, Any]


class ToolResult(TypedDict):
    """The answer to the tool use of the same id."""

    toolUseId: str
    status: ToolResultStatus
    content: list[ToolResultContent]


class ReasoningText(TypedDict):
    """A model's thinking, with the provider's signature when it sent one."""

    text: str
    signature: NotRequired[str]


class ReasoningContent(TypedDict, total=False):
    """Readable or redacted (encrypted) thinking; exactly one key is set."""

    reasoningText: ReasoningText
    redactedContent: bytes


class ContentBlock(TypedDict, total=False):
    """One block of a message; exactly one key is set."""

    text: str
    toolUse: ToolUse
    toolResult: ToolResult
    reasoningContent: ReasoningContent
    image: dict[str, Any]
    document: dict[str, Any]
    video: dict[str, Any]
    guardContent: dict[str, Any]
    cachePoint: dict[str, Any]
    citationsContent: dict[str, Any]


CONTENT_KEYS: frozenset[str] = frozenset(ContentBlock.__annotations__)


class Message(TypedDict):
    """One turn of the conversation. `metadata` is the caller's own and never reaches a provider."""

    role: Role
    content: list[ContentBlock]
    metadata: NotRequired[dict[str, Any]]


Messages: TypeAlias = list[Message]


class SystemContentBlock(TypedDict, total=False):
    """One block of the system prompt; exactly one key is set."""

    text: str
    cachePoint: dict[str, Any]
    guardContent: dict[str, Any]


class ToolSpec(TypedDict):
    """What a model is told about a tool. `inputSchema` is `{"json": <JSON schema of an object>}`."""

    name: str
    description: str
    inputSchema: dict[str, Any]


class Usage(TypedDict):
    """Tokens of one or several model calls."""

    inputTokens: int
    outputTokens: int
    totalTokens: int
    cacheReadInputTokens: NotRequired[int]
    cacheWriteInputTokens: NotRequired[int]


ToolChoice: TypeAlias = dict[str, Any]
"""`{"auto": {}}`, `{"any": {}}` or `{"tool": {"name": NAME}}`."""

StreamEvent: TypeAlias = dict[str, Any]
"""One event of a model's stream, a dict with exactly one key:

* `messageStart` `{"role": "assistant"}`
* `contentBlockStart` `{"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": ID, "name": NAME}}}`
  (`start` is `{}` for text)
* `contentBlockDelta` `{"contentBlockIndex": 0, "delta": D}` where D is `{"text": str}`, `{"toolUse": {"input": str}}`,
  `{"reasoningContent": {"text": str} | {"signature": str} | {"redactedContent": bytes}}` or `{"citation": {...}}`
* `contentBlockStop` `{"contentBlockIndex": 0}`
* `messageStop` `{"stopReason": STOP_REASON, "additionalModelResponseFields": ...}`
* `metadata` `{"usage": Usage, "metrics": {"latencyMs": int}}`
* `redactContent` `{"redactUserContentMessage": str, "redactAssistantContentMessage": str}` (either or both)
"""

AgentInput: TypeAlias = str | Sequence[Mapping[str, Any]] | Mapping[str, Any] | None
"""What an agent can be called with: a text, content blocks, messages, a resume payload, or None (go on)."""

Effect: TypeAlias = Literal["pure", "idempotent", "irreversible"]
"""What running a tool twice does: nothing, the same again, or harm."""

OnUnknown: TypeAlias = Literal["rerun", "error_result", "ask", "fail", "resume"]
"""What to do after a crash with a call that was started and has no known outcome."""
