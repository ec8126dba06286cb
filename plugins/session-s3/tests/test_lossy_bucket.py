"""A bucket that loses requests and answers: nobody else writes, so no conflict may be told, and nothing be lost."""

from __future__ import annotations

import gc
import hashlib
import random
import threading

import pytest

from ropewalk import Agent
from ropewalk.kits.sessions import SessionConflictError, SessionException, SessionManager
from ropewalk.kits.sessions.retention import Retention
from ropewalk_session_s3 import S3LogStore
from ropewalk_session_s3.bucket import Object
from ropewalk_testing import ScriptedModel, assert_valid_history, use

RETENTIONS = [Retention(), Retention(keep_last=1), Retention(compact_to_latest=True)]
CALLS = 14


class Lossy:
    """The part of `Bucket` that a log uses, over a dict."""

    def __init__(self, chance):
        self.objects = {}
        self.lost = 0.0
        self._chance = chance
        self._guard = threading.Lock()

    def get(self, key):
        return self._answered(lambda: Object(self.objects[key], self._etag(key), 0.0) if key in self.objects else None)

    def get_all(self, keys):
        return [self.get(key) for key in keys]

    def put(self, key, body, *, etag):
        def write():
            if self._etag(key) != etag:
                return None

            self.objects[key] = body
            return self._etag(key)

        return self._answered(write)

    def listed(self, prefix, after=""):
        found = self._answered(lambda: sorted(key for key in self.objects if key.startswith(prefix) and key > after))
        return (Listed(key) for key in found)

    def delete(self, keys):
        self._answered(lambda: [self.objects.pop(key, None) for key in keys])

    def _etag(self, key):
        return hashlib.sha256(self.objects[key]).hexdigest() if key in self.objects else None

    def _answered(self, act):
        with self._guard:
            chance = self._chance.random()
            if chance < self.lost / 2:
                raise SessionException("the request was lost")

            done = act()
            if chance < self.lost:
                raise SessionException("the answer was lost")

            return done


class Listed:
    def __init__(self, key):
        self.key = key


class Pay:
    tool_name = "pay"
    tool_spec = {"name": "pay", "description": "Pays.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012
    effect = "irreversible"

    def __init__(self):
        self.paid = []

    async def invoke(self, call):
        use_id = call.tool_use["toolUseId"]
        self.paid.append(use_id)
        call.agent.state.set(use_id, "paid")
        return {"toolUseId": use_id, "status": "success", "content": [{"text": "paid"}]}


class World:
    """A session in such a bucket."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.bucket = Lossy(self.chance)
        self.retention = self.chance.choice(RETENTIONS)
        self.pay = Pay()
        self.asked = 0

    def agent(self):
        store = S3LogStore("lossy")
        store._bucket = self.bucket
        manager = SessionManager("order-17", store, self.retention)
        model = ScriptedModel(self._answer, record=False)
        return Agent(model=model, tools=[self.pay], session_manager=manager, callback_handler=None)

    def _answer(self, request):
        if any("toolResult" in block for block in request.messages[-1]["content"]):
            return "It is paid."

        self.asked += 1
        return use("pay", {}, id=f"T{self.asked}")


@pytest.mark.parametrize("seed", range(24))
async def test_lost_requests_and_answers_cost_nothing_but_the_call(seed):
    world = World(seed)
    agent = world.agent()
    for number in range(CALLS):
        if world.chance.random() < 0.2:
            agent = None
            gc.collect()  # it may have been given up with a lease
            world.bucket.lost = 0.0
            agent = world.agent()

        world.bucket.lost = 0.12

        try:
            await agent.invoke_async(f"Pay {number}.")
        except SessionConflictError:
            raise  # nobody else writes
        except SessionException:
            pass

    world.bucket.lost = 0.0
    await agent.invoke_async("Pay at last.")
    again = world.agent()

    assert again.messages == agent.messages
    assert again.state.get() == agent.state.get()
    assert_valid_history(again.messages)
    assert len(world.pay.paid) == len(set(world.pay.paid)) > 0
