"""What goes wrong with structured output."""

from __future__ import annotations

from ropewalk.errors import RopewalkError


class OutputModelError(RopewalkError, TypeError):
    """What was given as output model is none; nothing was done."""


class StructuredOutputException(RopewalkError):  # noqa: N818 - the public name
    """The model did not fill the output model.

    Attributes:
        output_model: Name of the output model.
        problem: What was wrong with the last answer.
        attempts: How many answers were wrong.
    """

    def __init__(self, output_model: str, problem: str, attempts: int) -> None:
        self.output_model = output_model
        self.problem = problem
        self.attempts = attempts
        times = f" after {attempts} {'attempt' if attempts == 1 else 'attempts'}" if attempts else ""
        super().__init__(
            f"the model did not fill {output_model}{times}: {problem}\n"
            "To help it: describe the fields, ask for less, or use a stronger model "
            '(plugins=[("structured", {"max_attempts": ...})] allows more attempts).'
        )
