"""Whatever happens to a file: its longest good beginning is read, or one error; and no byte of it is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import random

import pytest

from ropewalk import Record
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.sessions import LogKey, SessionDamagedError
from ropewalk_session_file import FileLogStore
from ropewalk_session_file.lines import place_of

KEY = LogKey("s", "a")
COUNT = int(os.environ.get("ROPEWALK_DAMAGES", "300"))


def turns(count):
    """Commits as runs make them."""
    commits, number = [], 0
    for turn in range(count):
        run, message = f"run_{turn}", {"role": "user", "content": [{"text": f"question {turn} \U0001f642 {'x' * 30}"}]}
        answer = {"role": "assistant", "content": [{"text": f"answer {turn}"}]}
        commits.append([
            Record(run, 0, "run_started", {"invocation_state": [], "policies": ""}, 1.0),
            Record(run, 1, "message_appended", {"id": number, "message": message}, 1.0),
        ])  # fmt: skip
        commits.append([
            Record(run, 2, "message_appended", {"id": number + 1, "message": answer}, 1.0),
            Record(run, 3, "state_changed", {"cell": None, "key": "turn", "value": turn}, 1.0),
        ])  # fmt: skip
        commits.append([Record(run, 4, "run_ended", {"stop_reason": "end_turn"}, 1.0)])
        number += 2

    return commits


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A good file, and the records after each of its commits."""
    store = FileLogStore(tmp_path_factory.mktemp("original"))
    prefixes, position = [[]], 0
    for commit in turns(8):
        position = asyncio.run(store.append(KEY, commit, position))
        prefixes.append([*prefixes[-1], *commit])

    return (store.root / "s" / "a" / "log.jsonl").read_bytes(), prefixes


def damaged(data, dice):
    """The file cut, or with some bits turned, or with bytes taken out or put in."""
    changed = bytearray(data)
    kind = dice.choice(["cut", "flip", "flip", "flips", "cut and flip", "hole", "insert", "zeros"])
    if "cut" in kind:
        del changed[dice.randrange(len(changed)) :]

    at = dice.randrange(max(len(changed), 1))
    if "flip" in kind and changed:
        for _ in range(dice.randint(2, 9) if kind == "flips" else 1):
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    elif kind == "hole":
        del changed[at : at + dice.randint(1, 400)]
    elif kind == "insert":
        changed[at:at] = dice.randbytes(dice.randint(1, 50))
    elif kind == "zeros":
        changed[at : at + 50] = bytes(len(changed[at : at + 50]))

    return bytes(changed)


async def test_damage_is_never_a_wrong_history_and_never_overwritten(original, tmp_path):
    data, prefixes = original
    seed = random.SystemRandom().randrange(1 << 32) if COUNT > 300 else 7
    dice, store = random.Random(seed), FileLogStore(tmp_path)
    await store.append(KEY, prefixes[1], 0)
    folder = tmp_path / "s" / "a"
    log, extra = folder / "log.jsonl", Record("after", 0, "once", {"key": "k", "value": 1}, 1.0)
    kinds = {"whole": 0, "part": 0, "refused": 0}
    logging.disable(logging.WARNING)
    try:
        for number in range(COUNT):
            changed = damaged(data, dice)
            for path in folder.glob("set-aside-*"):
                path.unlink()

            log.write_bytes(changed)
            told = f"seed {seed}, number {number}"
            try:
                found = store.read(KEY)
            except SessionDamagedError:
                assert log.read_bytes() == changed, told
                kinds["refused"] += 1
                continue

            good = [prefix for prefix in prefixes if prefix == found.records]
            assert good, told
            between = len(changed) == place_of(found.position)[1] > 0  # cut between two commits, which nothing tells
            whole = between and data.startswith(changed)
            assert bool(found.report) == (not whole), told
            fold(LogState(), found.records)
            assert log.read_bytes() == changed, told
            kinds["whole" if found.records == prefixes[-1] else "part"] += 1

            await store.append(KEY, [extra], found.position)
            assert store.read(KEY).records == [*found.records, extra], told
            aside = b"".join(path.read_bytes() for path in store._place(KEY).aside())
            assert log.read_bytes().startswith(changed[: len(changed) - len(aside)]), told
            assert changed.endswith(aside), told
    finally:
        logging.disable(logging.NOTSET)

    assert kinds["part"] > COUNT // 2, kinds
    assert kinds["refused"] > 0, kinds


async def test_every_cut_of_a_short_log_gives_the_commits_before_it(tmp_path):
    store, position, ends, prefixes = FileLogStore(tmp_path), 0, [], [[]]
    for commit in turns(1):
        position = await store.append(KEY, commit, position)
        ends.append((tmp_path / "s" / "a" / "log.jsonl").stat().st_size)
        prefixes.append([*prefixes[-1], *commit])

    log = tmp_path / "s" / "a" / "log.jsonl"
    data = log.read_bytes()
    for cut in range(len(data) + 1):
        log.write_bytes(data[:cut])
        assert store.read(KEY).records == prefixes[sum(end <= cut for end in ends)], cut
