"""What is written is read again."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from ropewalk import Record
from ropewalk.kits.sessions import LogKey, LogStore, SessionException
from ropewalk_testing.store_conformance.base import KEY, Conformance, note, notes

TEXTS = (
    "",
    "plain",
    "line\nbreak\r\n and \u2028 and \x85 and \x00",
    '{"$bytes": "no"}',
    "\U0001f600 e\u0301 \u00e9 \u202e \ufeff \ufffe",
    "'; DROP TABLE logs; --",
    "x" * 100_000,
)
VALUES: tuple[Any, ...] = (
    b"\x00\xff\n",
    {"$bytes": "AAA="},
    {"$plain": {"$bytes": 1}},
    [],
    {},
    None,
    True,
    2**70,
    -0.5,
    1e300,
    {"": {"a b": [1, [2, {"c": None}]]}},
)
_ANGSTROM = "\u00c5NGSTR\u00d6M"
IDS = (
    "plain",
    "../x",
    "a/b",
    "a%2Fb",
    "a_b",
    "a-b",
    ".",
    "..",
    "a\\..\\..\\b",
    "C:evil",
    "CON",
    "con",
    "nul.txt",
    "",
    " ",
    "end.",
    "end",
    "a\nb",
    "a\0b",
    "x" * 300,
    "x" * 299 + "y",
    unicodedata.normalize("NFC", _ANGSTROM),
    unicodedata.normalize("NFD", _ANGSTROM),
    "Foo",
    "foo",
    "\U0001f600",
    "%",
    "_",
    "*?<>|\"'",
    "-rf",
    "~",
    "\ud800",
)


class Keeping(Conformance):
    """Tests of reading, writing, listing and deleting."""

    async def test_a_log_that_was_never_written_is_not_there(self, store: LogStore) -> None:
        """None, not an empty log, and reading makes none."""
        assert store.read(KEY) is None
        assert store.read(KEY) is None
        assert store.logs() == []

    async def test_records_come_back_in_order(self, store: LogStore) -> None:
        """As they were, from several writes, in another store."""
        first, second = notes(3), notes(2, 3)
        end = await store.append(KEY, first, 0)
        assert await store.append(KEY, second, end) == self.end(store)
        assert self.records(store) == [*first, *second]

    async def test_every_part_of_a_record_is_kept(self, store: LogStore) -> None:
        """Times to the last digit, paths, numbers that do not count from 0."""
        records = [
            Record(
                "run_\u00e9", 7, "message_appended", {"id": 3, "message": {"role": "user", "content": []}}, 0.1 + 0.2
            ),
            Record("run_2", 0, "tool_ended", {"id": "T"}, 1_700_000_000.123456, ("use 1", "use/2")),
            Record("run_2", 1, "run_ended", {"stop_reason": "end_turn"}, 0.0, ()),
        ]
        await store.append(KEY, records, 0)

        assert self.records(store) == records

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
    async def test_any_text_is_kept(self, store: LogStore, text: str) -> None:
        """In values and in keys."""
        await store.append(KEY, [note(0, text=text, deep=[{text: text}])], 0)

        assert self.records(store) == [note(0, text=text, deep=[{text: text}])]

    async def test_a_lone_surrogate_does_no_harm(self, store: LogStore) -> None:
        """Half an emoji becomes a replacement character; what is beside it is kept."""
        await store.append(KEY, [note(0, text="bad \ud83d end"), note(1)], 0)
        first, second = self.records(store)

        assert first.data["text"] in ("bad \ufffd end", "bad \ud83d end")
        assert second == note(1)

    @pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:20])
    async def test_any_value_is_kept(self, store: LogStore, value: Any) -> None:
        """JSON and bytes, and what looks like bytes."""
        await store.append(KEY, [note(0, it=value)], 0)
        (found,) = self.records(store)

        assert found.data["it"] == value
        assert type(found.data["it"]) is type(value)

    async def test_unknown_fields_are_kept(self, store: LogStore) -> None:
        """Of later versions that mean the same by the fields known here; also through a replacement."""
        records = [note(0, brought_by="a later release"), note(1)]
        end = await store.append(KEY, records, 0)
        await store.replace(KEY, records, end)

        assert self.records(store)[0].data["brought_by"] == "a later release"

    async def test_a_large_batch_is_kept(self, store: LogStore) -> None:
        """2,000 records in one write, a megabyte in one record."""
        records = [*notes(2_000), note(2_000, text="y" * 1_000_000)]
        await store.append(KEY, records, 0)

        assert self.records(store) == records

    async def test_nothing_may_be_written(self, store: LogStore) -> None:
        """An empty write changes nothing."""
        end = await store.append(KEY, notes(1), 0)

        assert await store.append(KEY, [], end) == end
        assert self.records(store) == notes(1)

    # -- many logs -------------------------------------------------------------------------------------------------

    async def test_hostile_ids_are_kept_apart_or_refused(self, store: LogStore) -> None:
        """Each id has its own log, as session and as agent, or is refused with a SessionException."""
        kept: dict[LogKey, list[Record]] = {}
        for number, text in enumerate(IDS):
            for key in (LogKey(text, "agent"), LogKey("session", text)):
                records = [note(number, run=f"run_{len(kept)}")]
                try:
                    await store.append(key, records, 0)
                except SessionException:
                    with pytest.raises(SessionException):
                        store.read(key)
                else:
                    kept[key] = records

        assert {LogKey("plain", "agent"), LogKey("session", "plain"), LogKey("Foo", "agent")} <= set(kept)
        assert {key: self.records(store, key) for key in kept} == kept
        assert sorted(_plain(info.key) for info in store.logs()) == sorted(map(_plain, kept))

    async def test_logs_are_listed(self, store: LogStore) -> None:
        """By session, or all of them, in order of their keys."""
        keys = [LogKey("b", "1"), LogKey("a", "2"), LogKey("a", "1")]
        for key in keys:
            await store.append(key, notes(2), 0)

        listed = self.reopened(store).logs()
        assert [info.key for info in listed] == sorted(keys, key=lambda key: (key.session_id, key.agent_id))
        assert all(info.size > 0 and info.changed > 0 for info in listed)
        assert [info.key for info in store.logs("a")] == [LogKey("a", "1"), LogKey("a", "2")]
        assert store.logs("c") == []

    def test_its_repr_says_what_store_it_is(self, store: LogStore) -> None:
        """It stands in messages: `There are no sessions in ...`; give a `__repr__`, without passwords."""
        assert type(store).__repr__ is not object.__repr__

    async def test_a_session_is_deleted_whole(self, store: LogStore) -> None:
        """With all its logs, and no other one; afterwards it begins anew."""
        other = LogKey("a session that stays", KEY.agent_id)
        for key in (KEY, LogKey(KEY.session_id, "other"), other):
            await store.append(key, notes(2), 0)

        assert store.delete(KEY.session_id) is True
        assert self.reopened(store).read(KEY) is None
        assert [info.key for info in store.logs()] == [other]
        assert self.records(store, other) == notes(2)
        assert store.delete(KEY.session_id) is False
        await store.append(KEY, notes(1, run="run_2"), 0)
        assert self.records(store) == notes(1, run="run_2")


def _plain(key: LogKey) -> tuple[str, str]:
    return key.session_id, key.agent_id
