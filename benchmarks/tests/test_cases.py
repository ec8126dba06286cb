"""Every case runs once, and proves that the work was done. Nothing here is timed."""

from __future__ import annotations

import pytest
from harness.driver import Driver
from harness.environments import ELSEWHERE, HERE, REQUIREMENTS
from harness.plan import PLAN
from harness.serving import CASES, load_driver, perform

CALLS = {  # tool calls of the one run, or of every repetition
    "construct": 1,
    "memory": 1,
    "later_turn": 1,
    "parallel": 100,
    "concurrency": 250,
    "persist": 20,
}
INSIDE = [case for case in PLAN if case.case != "import"]


@pytest.fixture(scope="module", params=HERE.values())
def driver(request):
    made = load_driver(request.param)
    made.load()
    return made


def calls_due(case, arguments, numbers):
    if case == "cycle":
        return arguments["n"] * numbers["repetitions"]

    if case == "growth":  # two invocations, of 1 and of 21 cycles
        return (1 + 21) * numbers["repetitions"]

    if case in ("stream", "session_turn", "session_open"):
        return 0

    return CALLS[case] * (numbers["repetitions"] if case in ("later_turn", "parallel") else 1)


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: case.label)
def test_a_case_makes_the_tool_calls_that_it_times(driver, case):
    arguments = case.arguments_for(quick=True)
    numbers = perform(driver, case.case, arguments)
    if case.case in driver.skip:
        assert numbers == {"skip": driver.skip[case.case]}
        return

    assert "error" not in numbers, numbers.get("trace")
    assert numbers["calls"] == calls_due(case.case, arguments, numbers)


@pytest.mark.parametrize("consumer", [True, False])
def test_every_piece_of_a_streamed_text_arrives(driver, consumer):
    numbers = perform(driver, "stream", {"deltas": 50, "consumer": consumer, "seconds": 0.0})
    assert numbers["deltas"] == 50
    assert numbers["repetitions"] == 2


class Lazy(Driver):
    """Answers at once, and does nothing."""

    name = "lazy"
    streams_always = True

    def tools(self, functions):
        return list(functions)

    def model(self, script):
        return script

    def agent(self, model, tools, history=(), store=None):
        return object()

    def history(self, count):
        return [None] * count

    async def run(self, agent, prompt):
        return "tok"

    async def stream(self, agent, prompt):
        return 1

    async def open_store(self, path):
        return path


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: case.label)
def test_a_case_refuses_a_driver_that_does_not_do_the_work(case):
    numbers = perform(Lazy(), case.case, case.arguments_for(quick=True))
    assert numbers["error"].startswith("WorkNotDoneError: the run did not do the work")


def test_what_a_driver_without_constant_streaming_does_unconsumed_is_skipped():
    class Whole(Lazy):
        streams_always = False

    assert "skip" in perform(Whole(), "stream", {"consumer": False})


def test_every_planned_case_exists():
    assert {case.case for case in PLAN} == {"import", *CASES}


def test_every_peer_has_a_module_and_pinned_requirements():
    folder = REQUIREMENTS.parent.parent
    for module, requirements in ELSEWHERE.values():
        assert (folder / (module.replace(".", "/") + ".py")).is_file()
        assert "==" in (REQUIREMENTS / f"{requirements}.txt").read_text(encoding="utf-8")
