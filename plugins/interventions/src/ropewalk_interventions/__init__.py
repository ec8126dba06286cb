"""Interventions: handlers that deny, guide, confirm and change what an agent does."""

from __future__ import annotations

from ropewalk_interventions.actions import Confirm, Deny, Guide, Proceed, Transform, default_evaluate
from ropewalk_interventions.errors import (
    GuidanceLimitError,
    HandlerAnswerError,
    HandlerTimeoutError,
    InterventionError,
)
from ropewalk_interventions.events import ModelAnswerEvent, ModelRequestEvent, ToolCallEvent
from ropewalk_interventions.handler import InterventionHandler
from ropewalk_interventions.human import HumanInTheLoop
from ropewalk_interventions.plugin import InterventionsPlugin

__all__ = [
    "Confirm",
    "Deny",
    "GuidanceLimitError",
    "Guide",
    "HandlerAnswerError",
    "HandlerTimeoutError",
    "HumanInTheLoop",
    "InterventionError",
    "InterventionHandler",
    "InterventionsPlugin",
    "ModelAnswerEvent",
    "ModelRequestEvent",
    "Proceed",
    "ToolCallEvent",
    "Transform",
    "default_evaluate",
]
