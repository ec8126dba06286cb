"""What every storage of context keeps."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

import pytest

from ropewalk.kits.context.storage import ContextStorage, StorageError
from ropewalk_testing.roles.common import Role, within

KEYS: Final = (
    "plain", "Plain", "", " ", ".", "..", "../up", "/root", "a/b", "a_b", "a b", "a%2Fb", "a\\b", "a\nb", "a\x00b",
    "a:b", "con", "nul.txt", "\u00e9", "e\u0301", "\U0001f600", "\ud800", "x" * 1_000,
)  # fmt: skip
"""Keys that some storages mix up, or cannot name."""

VALUES: Final = (b"", b"\x00", b"text", "naïve 🙂".encode(), bytes(range(256)) * 1_000, b"\r\n\x1a\n")


class StorageConformance(Role):
    """Tests that a `ContextStorage` passes. A subclass named `Test...` has a fixture `storage` that makes an empty one.

    Attributes:
        lists: Whether it can list its keys.
        deletes: Whether it can remove them.
    """

    lists: ClassVar[bool] = True
    deletes: ClassVar[bool] = True

    @pytest.fixture
    def storage(self) -> Any:
        """Makes an empty storage; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}: give a fixture `storage` that makes the one under test")

    def reopened(self, storage: Any) -> Any:  # noqa: ARG002 - for those who override it
        """Another storage of the same items, as another process opens it."""
        pytest.skip("it cannot be opened again (no method reopened)")

    def full(self, storage: Any) -> AbstractContextManager[Any]:  # noqa: ARG002 - for those who override it
        """A context in which nothing can be written."""
        pytest.skip("there is no way to fill it (no method full)")

    def damage(self, storage: Any, key: str) -> None:  # noqa: ARG002 - for those who override it
        """Cuts what is stored under a key in half, or changes it."""
        pytest.skip("there is no way to damage it (no method damage)")

    def test_it_has_the_methods(self, storage: Any) -> None:
        """And says whether it outlives the process."""
        assert isinstance(storage, ContextStorage)
        assert isinstance(getattr(storage, "durable", True), bool)

    async def test_what_was_written_is_read(self, storage: Any) -> None:
        """Byte for byte."""
        for number, value in enumerate(VALUES):
            await storage.write(f"k{number}", value)

        assert [await storage.read(f"k{number}") for number in range(len(VALUES))] == list(VALUES)

    async def test_what_is_not_there_is_none(self, storage: Any) -> None:
        """And no error."""
        assert await storage.read("nowhere") is None
        if self.deletes:
            assert await storage.delete("nowhere") is False

    async def test_any_text_is_a_key_of_its_own(self, storage: Any) -> None:
        """No two share an item."""
        for number, key in enumerate(KEYS):
            await storage.write(key, str(number).encode())

        assert [await storage.read(key) for key in KEYS] == [str(number).encode() for number in range(len(KEYS))]

    async def test_writing_again_replaces(self, storage: Any) -> None:
        """Also by something shorter."""
        await storage.write("k", b"a long value")
        await storage.write("k", b"short")

        assert await storage.read("k") == b"short"

    async def test_what_was_given_may_change_afterwards(self, storage: Any) -> None:
        """A copy is kept."""
        data = bytearray(b"before")
        await storage.write("k", data)
        data[:] = b"after!"

        assert await storage.read("k") == b"before"

    async def test_removing_removes_one(self, storage: Any) -> None:
        """And tells whether there was one."""
        if not self.deletes:
            pytest.skip("it cannot remove")

        await storage.write("a", b"1")
        await storage.write("ab", b"2")

        assert await storage.delete("a") is True
        assert await storage.delete("a") is False
        assert (await storage.read("a"), await storage.read("ab")) == (None, b"2")

    async def test_keys_are_listed(self, storage: Any) -> None:
        """Sorted, those that begin with a prefix."""
        if not self.lists:
            pytest.skip("it cannot list")

        assert list(await storage.list()) == []
        for key in ("b/2", "a", "b/1", "B/3", "b", "ab/4"):
            await storage.write(key, b"x")

        assert list(await storage.list()) == ["B/3", "a", "ab/4", "b", "b/1", "b/2"]
        assert list(await storage.list("b/")) == ["b/1", "b/2"]
        assert list(await storage.list("nothing")) == []

    async def test_what_is_written_at_once_is_one_or_the_other(self, storage: Any) -> None:
        """Never a mixture, and nothing else is lost."""
        values = [bytes([number]) * 50_000 for number in range(8)]
        await within(_all([storage.write("k", value) for value in values]))
        await within(_all([storage.write(f"own{n}", value) for n, value in enumerate(values)]))

        assert await storage.read("k") in values
        assert [await storage.read(f"own{n}") for n in range(len(values))] == values

    def test_it_serves_event_loops_in_a_row_and_at_once(self, storage: Any) -> None:
        """Of several threads."""
        failed: list[BaseException] = []

        async def work(number: int) -> None:
            for step in range(20):
                await storage.write(f"{number}/{step}", f"{number} {step}".encode())
                assert await storage.read(f"{number}/{step}") == f"{number} {step}".encode()

        def body(number: int) -> None:
            try:
                asyncio.run(work(number))
            except BaseException as error:  # noqa: BLE001 - told in the test's own thread
                failed.append(error)

        body(0)
        threads = [threading.Thread(target=body, args=(number,)) for number in range(1, 4)]
        for thread in threads:
            thread.start()

        for thread in threads:
            thread.join(60)

        assert failed == []
        assert asyncio.run(storage.read("3/19")) == b"3 19"

    async def test_what_is_durable_is_there_again(self, storage: Any) -> None:
        """For whoever opens it next."""
        if not getattr(storage, "durable", True):
            pytest.skip("it ends with the process")

        again = self.reopened(storage)
        for number, key in enumerate(KEYS):
            await storage.write(key, str(number).encode())

        assert [await again.read(key) for key in KEYS] == [str(number).encode() for number in range(len(KEYS))]

    async def test_a_failed_write_changes_nothing(self, storage: Any) -> None:
        """It is a StorageError."""
        await storage.write("k", b"before")
        with self.full(storage), pytest.raises(StorageError):
            await storage.write("k", b"x" * 10_000)

        assert await storage.read("k") == b"before"
        await storage.write("k", b"after")
        assert await storage.read("k") == b"after"

    async def test_damage_is_told(self, storage: Any) -> None:
        """It is a StorageError, and never other bytes than those that were written."""
        await storage.write("k", b"some bytes" * 100)
        self.damage(storage, "k")
        with pytest.raises(StorageError):
            await storage.read("k")


async def _all(works: list[Any]) -> None:
    await asyncio.gather(*works)
