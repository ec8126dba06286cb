"""Processes that are killed before, in or after any call of the system that the store makes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal

import pytest

from ropewalk import Record
from ropewalk_session_file import FileLogStore
from ropewalk_testing.store_conformance.processes import Child

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"), pytest.mark.long]

CALLS = ("open", "close", "write", "fsync", "ftruncate", "lseek", "mkdir", "rename", "replace", "unlink")
MOST = 200


def said(number, text, **more):
    message = {"role": "user", "content": [{"text": text}]}
    return Record("r", number, "message_appended", {"id": number, "message": message, **more}, 1.0)


FIRST = [said(0, "secret"), said(1, "b")]
SECOND = [said(2, "c"), said(3, "d"), said(4, "e")]
ERASED = [said(0, "[erased]", erased=True), *FIRST[1:], *SECOND]
LAST = [said(5, "f")]
STATES = [[], FIRST, FIRST + SECOND, ERASED, ERASED + LAST]


async def write_all(folder, key):
    store = FileLogStore(folder, durability="power")
    lease = await store.lease(key)
    end = await store.append(key, FIRST, 0)
    end = await store.append(key, SECOND, end)
    end = await store.replace(key, ERASED, end)
    await store.append(key, LAST, end)
    lease.release()


def die_at(number, place):
    """Kills this process at so many calls: before the call, or after it, which is half a write."""
    counted = itertools.count(1)

    def watched(name, inner):
        def call(*given, **named):
            if next(counted) == number:
                with contextlib.suppress(OSError):
                    if place == "after":
                        inner(
                            *((given[0], bytes(given[1])[: len(given[1]) // 2]) if name == "write" else given), **named
                        )

                os.kill(os.getpid(), signal.SIGKILL)

            return inner(*given, **named)

        return call

    for name in CALLS:
        setattr(os, name, watched(name, getattr(os, name)))


def came_to_its_end(work):
    with Child(work) as child:
        try:
            return child.answer(60) == "done"
        except AssertionError as error:
            if "ended" not in str(error):
                raise

            return False


async def go_on(folder, key):
    """What a new process finds; it can write, and nothing but the log and what was set aside stays."""
    store = FileLogStore(folder)
    found = store.read(key)
    lease = await store.lease(key)
    end = await store.append(key, [said(6, "g")], 0 if found is None else found.position)
    end = await store.replace(key, [said(7, "h")], end)
    lease.release()
    again = FileLogStore(folder).read(key)

    assert (again.records, again.position, again.report) == ([said(7, "h")], end, ())
    return [] if found is None else found.records


@pytest.mark.parametrize("place", ["before", "after"])
def test_whatever_call_a_process_dies_at_the_log_is_as_it_was_after_some_commit(tmp_path, key, place):
    for number in range(1, MOST):
        folder = tmp_path / str(number)

        def work(number=number, folder=folder):
            die_at(number, place)
            asyncio.run(write_all(folder, key))
            return "done"

        if came_to_its_end(work):
            break

        assert asyncio.run(go_on(folder, key)) in STATES

    assert 20 < number < MOST - 1
