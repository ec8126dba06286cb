"""Servers on loopback that answer as the providers do, with the turns of a script and every kind of fault."""

from __future__ import annotations

from ropewalk_testing.servers.bedrock import BedrockServer
from ropewalk_testing.servers.eventstream import error_frame, event_frame, exception_frame, frame, frames
from ropewalk_testing.servers.faults import CUT, HttpFault, Pause, StreamFault, http_fault, pause, stream_fault
from ropewalk_testing.servers.line import Received
from ropewalk_testing.servers.openai import DONE, OpenAIServer, sse

__all__ = [
    "CUT",
    "DONE",
    "BedrockServer",
    "HttpFault",
    "OpenAIServer",
    "Pause",
    "Received",
    "StreamFault",
    "error_frame",
    "event_frame",
    "exception_frame",
    "frame",
    "frames",
    "http_fault",
    "pause",
    "sse",
    "stream_fault",
]
