"""Storages of what leaves the context: the same for all of them, and what is each one's own."""

from __future__ import annotations

import errno
import os
import stat
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.kits.context.folder_storage import FolderStorage
from ropewalk.kits.context.framing import file_name, framed, key_in, unframed
from ropewalk.kits.context.sandbox_storage import FOLDER, SandboxStorage, is_sandbox
from ropewalk.kits.context.storage import ContextStorage, MemoryStorage, StorageError

KEYS = {
    "a word": "off_12",
    "up": "../x",
    "a path": "a/b",
    "dots": "..",
    "backslashes": "a\\..\\..\\b",
    "a drive": "C:evil",
    "a device": "CON",
    "a device with a suffix": "nul.txt",
    "nothing": "",
    "a blank": " ",
    "a dot at the end": "end.",
    "a newline": "a\nb",
    "a null": "a\0b",
    "300 characters": "x" * 300,
    "composed": "\u00c5NGSTR\u00d6M",
    "decomposed": "A\u030aNGSTRO\u0308M",
    "a capital": "Foo",
    "no capital": "foo",
    "half a character": "bad \ud83d end",
}


class Sandbox:
    """Files in a dict, through async methods."""

    def __init__(self):
        self.files = {}

    async def write_file(self, path, data):
        self.files[path] = data

    async def read_file(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)

        return self.files[path]

    async def remove_file(self, path):
        del self.files[path]

    async def list_files(self, path):
        return [name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")]


class SyncSandbox:
    """The same, with plain methods."""

    def __init__(self):
        self.files = {}

    def write_file(self, path, data):
        self.files[path] = data

    def read_file(self, path):
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None


@pytest.fixture(params=["memory", "folder", "sandbox"])
def storage(request, tmp_path):
    made = {"memory": MemoryStorage, "folder": lambda: FolderStorage(tmp_path / "a" / "b")}
    return made.get(request.param, lambda: SandboxStorage(Sandbox()))()


async def test_what_was_written_is_read_replaced_listed_and_deleted(storage):
    assert isinstance(storage, ContextStorage)
    assert await storage.read("one") is None
    assert await storage.list() == []
    assert not await storage.delete("one")

    await storage.write("one", b"1")
    await storage.write("two", b"")
    await storage.write("one", b"\x00\xff\n11")

    assert await storage.read("one") == b"\x00\xff\n11"
    assert await storage.read("two") == b""
    assert list(await storage.list()) == ["one", "two"]
    assert list(await storage.list("t")) == ["two"]
    assert await storage.delete("one")
    assert await storage.read("one") is None
    assert list(await storage.list()) == ["two"]


async def test_any_text_is_a_key_and_no_two_share_an_item(storage):
    """Scenario A15."""
    for number, key in enumerate(KEYS.values()):
        await storage.write(key, b"%d" % number)

    for number, key in enumerate(KEYS.values()):
        assert await storage.read(key) == b"%d" % number

    assert list(await storage.list()) == sorted(KEYS.values())


# -- memory ------------------------------------------------------------------------------------------------------------


async def test_a_full_memory_says_so_and_keeps_what_it_has():
    storage = MemoryStorage(10)
    await storage.write("a", b"12345678")
    with pytest.raises(StorageError, match="3 bytes do not fit beside 8 of 10"):
        await storage.write("b", b"123")

    await storage.write("a", b"1234567890")  # in the place of the other
    with pytest.raises(StorageError):
        await storage.write("a", b"12345678901")

    assert await storage.read("a") == b"1234567890"
    assert await storage.read("b") is None
    await storage.delete("a")
    await storage.write("b", b"123")
    assert repr(storage) == "MemoryStorage(1 items, 3 bytes)"
    with pytest.raises(ValueError, match="most_bytes=-1"):
        MemoryStorage(-1)


# -- a folder ----------------------------------------------------------------------------------------------------------


async def test_another_storage_of_the_folder_reads_what_one_wrote(tmp_path):
    await FolderStorage(tmp_path).write("x", b"data")
    assert await FolderStorage(str(tmp_path)).read("x") == b"data"


async def test_all_files_are_inside_of_the_folder_and_nothing_is_left_beside_them(tmp_path):
    folder = tmp_path / "inside"
    storage = FolderStorage(folder)
    for key in KEYS.values():
        await storage.write(key, b"1")
        await storage.write(key, b"2")

    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    names = {path.name for path in folder.iterdir()}
    assert names == {file_name(key) for key in KEYS.values()}
    assert len({name.lower() for name in names}) == len(KEYS)
    if sys.platform != "win32":
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
async def test_a_link_is_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(framed("x", b"secret"))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / file_name("x")).symlink_to(secret)
    storage = FolderStorage(folder)

    with pytest.raises(StorageError, match="links are not followed"):
        await storage.read("x")

    await storage.write("x", b"new")  # in the place of the link
    assert await storage.read("x") == b"new"
    assert secret.read_bytes() == framed("x", b"secret")


@pytest.mark.skipif(sys.platform == "win32", reason="there are none there")
async def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / file_name("x"))
    with pytest.raises(StorageError, match="no regular file"):
        await FolderStorage(tmp_path).read("x")


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b"", lambda b: b"{}\n1", lambda b: b + b"1"])
async def test_a_damaged_file_is_an_error_that_names_it(tmp_path, change):
    storage = FolderStorage(tmp_path)
    await storage.write("x", b"data")
    path = tmp_path / file_name("x")
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(StorageError, match=r"x\.item is damaged"):
        await storage.read("x")


async def test_strange_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "strange.item").write_bytes(b"\xff\xfe")
    storage = FolderStorage(tmp_path)
    await storage.write("x", b"data")
    assert list(await storage.list()) == ["x"]


async def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="something that is no folder is in the way"):
        await FolderStorage(tmp_path / "file").write("x", b"data")

    with pytest.raises(StorageError, match="is in the way"):
        await FolderStorage(tmp_path / "file" / "deeper").write("x", b"data")


async def test_a_full_disk_leaves_the_old_item_and_nothing_half_written(tmp_path, monkeypatch):
    storage = FolderStorage(tmp_path)
    await storage.write("x", b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(StorageError, match="free some space"):
        await storage.write("x", b"new")

    assert await storage.read("x") == b"old"
    assert len(list(tmp_path.iterdir())) == 1


# -- a sandbox ---------------------------------------------------------------------------------------------------------


async def test_a_sandbox_gets_files_in_a_folder_of_its_own_and_may_have_plain_methods():
    sandbox = SyncSandbox()
    storage = SandboxStorage(sandbox)
    await storage.write("x", b"data")

    assert list(sandbox.files) == [f"{FOLDER}/x.item"]
    assert await storage.read("x") == b"data"
    assert await storage.read("y") is None
    with pytest.raises(StorageError, match="no method remove_file"):
        await storage.delete("x")

    sandbox.files[f"{FOLDER}/x.item"] = framed("x", b"data").decode()  # one that reads text
    assert await storage.read("x") == b"data"


async def test_what_fails_in_a_sandbox_is_an_error_that_says_what():
    class Gone:
        def __repr__(self):
            return "<gone>"

        async def write_file(self, path, data):
            raise ConnectionError("no route to host")

        read_file = write_file

    with pytest.raises(StorageError, match=r"write_file of <gone> failed .*ConnectionError: no route to host"):
        await SandboxStorage(Gone()).write("x", b"data")

    with pytest.raises(ValueError, match="no write_file and read_file"):
        SandboxStorage(object())

    assert not is_sandbox(object())


# -- files -------------------------------------------------------------------------------------------------------------


@given(key=st.text(max_size=40), other=st.text(max_size=40), data=st.binary(max_size=200))
@settings(max_examples=60)
def test_a_framed_item_comes_back_under_its_own_key_only(key, other, data):
    content = framed(key, data)
    assert key_in(content) == key
    assert unframed(key, content, "it") == data
    if other != key:
        with pytest.raises(StorageError):
            unframed(other, content, "it")

        assert file_name(other) != file_name(key)


def test_a_key_that_is_too_long_is_refused():
    with pytest.raises(StorageError, match="a key of 70,000 characters is too long"):
        framed("x" * 70_000, b"")
