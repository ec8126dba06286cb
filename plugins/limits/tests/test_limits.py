"""What is a limit, and what is none."""

from __future__ import annotations

import pytest

from ropewalk_limits.limits import checked_limits


def test_limits_that_are_some_pass_unchanged():
    given = {
        "turns": 1, "output_tokens": 2, "total_tokens": 3, "seconds": 0.5, "tool_calls": 4, "cost": 0.01,
    }  # fmt: skip
    assert checked_limits(given, "limits") == given


@pytest.mark.parametrize("name", ["turns", "output_tokens", "total_tokens", "tool_calls"])
@pytest.mark.parametrize("value", [0, -1, True, False, 2.0, "3", None, [1]], ids=repr)
def test_a_count_is_a_whole_number_above_zero(name, value):
    """Conformance 131."""
    with pytest.raises(TypeError, match=f"limits: {name}=.* is no limit: give a whole number above 0"):
        checked_limits({name: value}, "limits")


@pytest.mark.parametrize("name", ["seconds", "cost"])
@pytest.mark.parametrize("value", [0, -0.1, True, "3", None, float("nan"), float("inf")], ids=repr)
def test_what_is_measured_is_a_number_above_zero(name, value):
    """Conformance 131."""
    with pytest.raises(TypeError, match=f"limits: {name}=.* is no limit: give a number above 0"):
        checked_limits({name: value}, "limits")


@pytest.mark.parametrize(
    ("name", "hint"), [("turn", "did you mean 'turns'"), ("max", "the limits are turns"), (1, "1")]
)
def test_an_unknown_limit_is_refused_by_name(name, hint):
    """Conformance 131."""
    with pytest.raises(TypeError, match=hint):
        checked_limits({name: 5}, "limits")
