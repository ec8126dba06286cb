"""The kernel's tests run with the kernel alone: whatever plugins are installed stay off."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # kernel_fakes: in importlib mode a test folder is on no path

from kernel_fakes import awaited, called, streamed


@pytest.fixture(autouse=True)
def _no_plugins(request, monkeypatch):
    if "hooks" not in request.path.parts:
        monkeypatch.setenv("ROPEWALK_PLUGINS", "none")
        monkeypatch.delenv("ROPEWALK_MODEL", raising=False)


@pytest.fixture(params=[called, awaited, streamed], ids=lambda entry: entry.__name__)
def ask(request):
    """One way to call an agent: `ask(agent, prompt)` gives the result. Tests that use it run once for each way."""
    return request.param


@pytest.fixture
async def quiet_loop():
    """Fails when a test leaves a task behind, or an error that nobody took."""
    loop = asyncio.get_running_loop()
    complaints = []
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
    before = asyncio.all_tasks()
    yield
    gc.collect(1)  # the young ones: the whole heap of a test run takes long
    await asyncio.sleep(0)
    assert complaints == []
    assert asyncio.all_tasks() - before <= {asyncio.current_task()}


@pytest.fixture
def _no_collector():
    """Only what nothing refers to is freed: cycles are not."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
