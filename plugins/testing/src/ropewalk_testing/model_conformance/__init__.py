"""What every model keeps, as tests to inherit: `class TestMine(ModelConformance)` with a fixture `model_for`."""

from __future__ import annotations

from ropewalk_testing.model_conformance.answering import Answering
from ropewalk_testing.model_conformance.ending import Ending
from ropewalk_testing.model_conformance.failing import Failing
from ropewalk_testing.model_conformance.requesting import Requesting
from ropewalk_testing.model_conformance.rig import Rig, RigMaker, ask

__all__ = ["ModelConformance", "Rig", "RigMaker", "ask"]


class ModelConformance(Answering, Requesting, Ending, Failing):
    """Tests that a model passes. A subclass named `Test...` has a fixture (or method) `model_for`.

    `model_for` is a function that takes a list of turns, one per call, and gives the model, or `(model, server)` with a
    server (or `ScriptedModel`) of `ropewalk_testing`, so that tests can look at what was sent and left open.

    Attributes:
        scripted: Whether the model answers with the turns given; False (a real model) leaves out tests that need it.
        streams: Whether answers come in pieces; False for a model that gets them whole.
        stop_reasons: What it can report besides `end_turn` and `tool_use`.
        supports_interleaving: Whether its wire can stream two tool uses at once.
        supports_output_schema: Whether answers can be held to a schema.
        supports_reasoning: Whether thinking is streamed, with its signature, and sent back.
        supports_redacted_reasoning: Whether encrypted thinking is.
        supports_system: Whether there are system prompts.
        supports_tool_choice: Whether a tool use can be asked for.
    """
