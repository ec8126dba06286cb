"""Scenario A12 on databases: two processes talk to one session at once, 200 turns each."""

from __future__ import annotations

import pytest

from ropewalk import Agent, SQLSessionManager
from ropewalk_testing import ScriptedModel, assert_valid_history

TURNS = 200
MOST_ATTEMPTS = 20_000

CHILD = """
import sys, time
from ropewalk import Agent, SQLSessionManager
from ropewalk.kits.sessions import SessionConflictError
from ropewalk_testing import ScriptedModel

url, name, turns, most = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
conflicts = said = 0

def opened():
    answer = lambda request: "to " + request.messages[-1]["content"][-1]["text"]
    manager = SQLSessionManager("shared", url)
    return Agent(ScriptedModel(answer), callback_handler=None, session_manager=manager, plugins=["-window"])

agent = opened()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(most):
    if said == turns:
        break

    try:
        agent = agent or opened()
        agent(f"{name} {said}")
        said += 1
    except SessionConflictError:  # the other one was quicker: read again what there is now
        conflicts += 1
        agent = None
        time.sleep(0.002)

print(said, conflicts)
"""


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/sessions.sqlite3"


def test_two_processes_with_200_turns_each_lose_nothing_and_the_later_one_gets_conflicts(url, race):
    told = race(CHILD, *([url, name, str(TURNS), str(MOST_ATTEMPTS)] for name in ("x", "y")))

    assert [int(said) for said, _ in told] == [TURNS, TURNS]
    assert sum(int(conflicts) for _, conflicts in told) >= 1, "both began with an empty log"
    manager = SQLSessionManager("shared", url)
    agent = Agent(ScriptedModel([]), callback_handler=None, session_manager=manager, plugins=["-window"])
    texts = [block["text"] for message in agent.messages for block in message["content"]]
    prompts, answers = texts[::2], texts[1::2]
    assert answers == [f"to {prompt}" for prompt in prompts]
    for name in ("x", "y"):
        assert [prompt for prompt in prompts if prompt.startswith(name)] == [f"{name} {n}" for n in range(TURNS)]

    assert len(prompts) == 2 * TURNS
    assert_valid_history(agent.messages)
    manager.close()
