"""What a subclass says of its model, and the fixture that all tests use."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import pytest

from ropewalk_testing.model_conformance.rig import Rig, RigMaker
from ropewalk_testing.servers import http_fault, stream_fault


class Conformance:
    """Attributes and hooks; see `ModelConformance`."""

    scripted: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    stop_reasons: ClassVar[tuple[str, ...]] = ("max_tokens",)
    supports_interleaving: ClassVar[bool] = True
    supports_output_schema: ClassVar[bool] = False
    supports_reasoning: ClassVar[bool] = False
    supports_redacted_reasoning: ClassVar[bool] = False
    supports_system: ClassVar[bool] = True
    supports_tool_choice: ClassVar[bool] = True

    # -- what a subclass gives -------------------------------------------------------------------------------------

    @pytest.fixture
    def model_for(self) -> Any:
        """Makes models; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a fixture `model_for` that makes the model under test")

    def refused(self, message: str) -> Any:
        """A turn that is an error nobody should repeat."""
        return http_fault(400, "ValidationException", message)

    def throttled(self, message: str) -> Any:
        """A turn that asks for fewer requests."""
        return http_fault(429, "ThrottlingException", message)

    def overflowing(self, message: str) -> Any:
        """A turn that finds the request too long."""
        return http_fault(400, "ValidationException", message)

    def broken(self, message: str) -> Any:
        """A turn that fails after half of the answer."""
        return stream_fault("modelStreamErrorException", message, after=["half"])

    # -- their parts -----------------------------------------------------------------------------------------------

    @pytest.fixture
    def rig(self, request: pytest.FixtureRequest) -> RigMaker:
        """Makes rigs out of what `model_for` makes."""
        own = inspect.getattr_static(self, "model_for")
        if inspect.isfunction(own) and not hasattr(own, "_pytestfixturefunction"):
            return lambda turns: Rig(own(self, turns))

        make = request.getfixturevalue("model_for")
        return lambda turns: Rig(make(turns))

    def needs(self, able: bool, what: str) -> None:
        """Leaves the test out if the model is not able to do something."""
        if not able:
            pytest.skip(f"the model has no {what}")
