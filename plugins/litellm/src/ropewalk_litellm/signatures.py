"""Signatures of tool calls: Gemini signs calls, and goes on with its thinking when it gets the signatures back.

LiteLLM has them in the calls' ids, behind a mark, which makes ids that no other provider takes and that say the
signature once more with the result. In the conversation the id is the provider's own and the signature stands beside
it, where it passes through stores, snapshots and other models; only Gemini is sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MARK: Final = "__thought__"
_FIELD: Final = "thought_signature"


def parted(given_id: str) -> tuple[str, str]:
    """The id and the signature in what LiteLLM gives as id; each may be empty."""
    own, _, signature = given_id.partition(_MARK)
    return own, signature


def signature_in(*parts: Any) -> str:
    """The signature that a call or its function has in a field of its own, as LiteLLM may be set to give it."""
    for part in parts:
        fields = getattr(part, "provider_specific_fields", None)
        found = fields.get(_FIELD) if isinstance(fields, Mapping) else None
        if isinstance(found, str) and found:
            return found

    return ""


def takes_signatures(model_id: str) -> bool:
    """Whether the model is one that signs its calls."""
    return "gemini" in model_id.lower()


def signed_id(use: Mapping[str, Any]) -> str:
    """The id under which LiteLLM finds the signature of a call."""
    own, signature = str(use["toolUseId"]), use.get("signature")
    return f"{own}{_MARK}{signature}" if isinstance(signature, str) and signature else own
