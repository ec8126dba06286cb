"""Structured output: an agent's answer as a filled pydantic model."""

from __future__ import annotations

from ropewalk_structured.errors import OutputModelError, StructuredOutputException
from ropewalk_structured.plugin import StructuredPlugin

__all__ = ["OutputModelError", "StructuredOutputException", "StructuredPlugin"]
