"""The embedded model, held to what every model keeps, and recorded."""

from __future__ import annotations

import pytest

from ropewalk_local import LocalModel
from ropewalk_testing import ModelConformance
from ropewalk_testing.cassettes import Cassette, CassetteDrift

pytestmark = pytest.mark.model

_MODEL = LocalModel("smollm2-135m", n_ctx=1024, max_tokens=40)


class TestLocalModel(ModelConformance):
    scripted = False
    supports_output_schema = True

    def model_for(self, turns):
        return _MODEL


async def test_a_run_can_be_recorded_and_played(tmp_path, ask, spec):
    path = tmp_path / "run.json"
    request = ask("Pick red.", tool_specs=(spec("pick", colour={"enum": ["red"]}),), tool_choice={"any": {}})
    live = [event async for event in Cassette(path, model=_MODEL).stream(request)]

    assert [event async for event in Cassette(path).stream(request)] == live
    with pytest.raises(CassetteDrift, match=r"messages\[0\]\.content\[0\]\.text"):
        [event async for event in Cassette(path).stream(ask("Pick green."))]
