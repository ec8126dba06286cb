"""Time that does not pass, and models with names."""

from __future__ import annotations

import pytest

from ropewalk.kits.aio.seam import Seam, use_seam
from ropewalk_testing import ScriptedModel


class Waits(Seam):
    """Returns from every sleep at once, and remembers how long it would have been."""

    def __init__(self):
        self.seconds = []

    async def sleep(self, seconds):
        self.seconds.append(seconds)


@pytest.fixture
def waits():
    with use_seam(Waits()) as seam:
        yield seam.seconds


@pytest.fixture
def named():
    """Makes a scripted model with an id of its own."""

    def make(name, *turns, **options):
        model = ScriptedModel(list(turns), **options)
        model.model_id = name
        return model

    return make
