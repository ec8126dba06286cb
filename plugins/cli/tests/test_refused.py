from __future__ import annotations

from ropewalk import hookimpl
from ropewalk_cli.refused import implemented_by, refusals_of


class Fits:
    """As much as a class can have."""

    __slots__ = ("value",)
    name = "fits"
    tier = "observer"
    order = -1
    api = (0, 1)

    @hookimpl(tryfirst=True)
    def on_delta(self, event): ...

    @hookimpl(specname="on_event")
    async def watch(self, event): ...

    @property
    def other(self):
        raise AssertionError

    def helper(self): ...


class Below(Fits):
    on_delta = None  # takes an inherited hook back


def test_a_class_that_fits_has_no_refusals():
    assert refusals_of(Fits) == refusals_of(Below) == []
    assert implemented_by(Fits) == ["on_delta", "on_event"]
    assert implemented_by(Below) == ["on_event"]


def test_a_class_without_anything_has_no_name():
    [text] = refusals_of(type("Nothing", (), {}))
    assert "its name is None" in text


def test_one_fault_is_told_once():
    class Bad(Fits):
        @hookimpl
        def on_dleta(self, event): ...

    [text] = refusals_of(Bad)
    assert "plugin 'fits'" in text
    assert ".Bad): there is no hook 'on_dleta'" in text


def test_the_class_is_left_as_it_was():
    before = dict(vars(Fits))
    refusals_of(Fits)
    assert dict(vars(Fits)) == before
    assert Below in Fits.__subclasses__()
