"""Guards and storages: those that do everything right, and others with one fault each."""

from __future__ import annotations

import asyncio

from ropewalk import ModelOutcome, hookimpl
from ropewalk.kits.calls.verdicts import Guide, Refuse, Replace
from ropewalk.kits.context.storage import MemoryStorage, StorageError

# -- guards ------------------------------------------------------------------------------------------------------------


class Guard:
    """Refuses the tool `danger` and the word secret."""

    name = "guard-under-test"

    @hookimpl
    async def intervene(self, moment, subject, agent):
        return self.judge(moment, subject)

    def judge(self, moment, subject):
        if moment == "before_tool_call":
            return Refuse("no") if subject.tool.tool_name == "danger" else None

        shown = getattr(subject, "messages", None) or getattr(subject, "message", None) or subject
        return Refuse("no") if "secret" in str(list(shown) if not isinstance(shown, dict) else shown) else None


class LetsAllPass(Guard):
    def judge(self, moment, subject):
        return None


class RefusesAll(Guard):
    def judge(self, moment, subject):
        return Refuse("no")


class MarksAnswers(Guard):
    def judge(self, moment, subject):
        if moment == "after_model_call":
            return Replace(ModelOutcome.saying("marked"))

        return super().judge(moment, subject)


class AnswersTrue(Guard):
    def judge(self, moment, subject):
        return True if moment == "after_tool_call" else super().judge(moment, subject)


class GuidesTools(Guard):
    def judge(self, moment, subject):
        return Guide("no") if moment == "before_tool_call" else super().judge(moment, subject)


class ReplacesByText(Guard):
    def judge(self, moment, subject):
        return Replace("text") if moment == "after_tool_call" else super().judge(moment, subject)


class WritesToSubjects(Guard):
    def judge(self, moment, subject):
        if moment == "before_tool_call":
            subject.tool_use["input"]["checked"] = True

        return super().judge(moment, subject)


class WritesToAnswers(Guard):
    def judge(self, moment, subject):
        if moment == "after_model_call":
            subject.stop_reason = "refusal"

        return super().judge(moment, subject)


class LooksAtTheNameAskedFor(Guard):
    def judge(self, moment, subject):
        if moment == "before_tool_call":
            return Refuse("no") if subject.tool_use["name"] == "danger" else None

        return super().judge(moment, subject)


class OnlyModels(Guard):
    def judge(self, moment, subject):
        return None if moment == "before_tool_call" and subject.direct else super().judge(moment, subject)


class NotBefore(Guard):
    def judge(self, moment, subject):
        return None if moment in ("before_invocation", "before_model_call") else super().judge(moment, subject)


class NotAfterModels(Guard):
    def judge(self, moment, subject):
        return None if moment == "after_model_call" else super().judge(moment, subject)


class NotAfterTools(Guard):
    def judge(self, moment, subject):
        return None if moment in ("after_tool_call", "before_model_call") else super().judge(moment, subject)


class OnceRefusedAlwaysRefused(Guard):
    closed = False

    def judge(self, moment, subject):
        verdict = super().judge(moment, subject)
        self.closed = self.closed or verdict is not None
        return Refuse("closed") if self.closed and moment == "before_tool_call" else verdict


# -- storages ----------------------------------------------------------------------------------------------------------


class Storage:
    """In memory, and shared by those who open it again."""

    durable = True

    def __init__(self, items=None):
        self.items = {} if items is None else items
        self.full = False

    async def write(self, key, data):
        if self.full:
            raise StorageError("full")

        self.items[self.name(key)] = (key, bytes(data), len(data))

    async def read(self, key):
        found = self.items.get(self.name(key))
        if found is not None and len(found[1]) != found[2]:
            raise StorageError("damaged")

        return None if found is None else found[1]

    async def delete(self, key):
        return self.items.pop(self.name(key), None) is not None

    async def list(self, prefix=""):
        return sorted(key for key, *_ in self.items.values() if key.startswith(prefix))

    def name(self, key):
        return key


class NoList:
    write, read, delete = MemoryStorage.write, MemoryStorage.read, MemoryStorage.delete


class StripsBytes(Storage):
    async def write(self, key, data):
        await super().write(key, bytes(data).strip())


class RaisesKeyErrors(Storage):
    async def read(self, key):
        return self.items[key][1]


class SafeNames(Storage):
    def name(self, key):
        return "".join(letter if letter.isalnum() else "_" for letter in key)


class KeepsTheFirst(Storage):
    async def write(self, key, data):
        if key not in self.items:
            await super().write(key, data)


class KeepsTheObject(Storage):
    async def write(self, key, data):
        self.items[key] = (key, data, len(data))


class RemovesByPrefix(Storage):
    async def delete(self, key):
        gone = [name for name in self.items if name.startswith(key)]
        for name in gone:
            del self.items[name]

        return bool(gone)


class AlwaysRemoved(Storage):
    async def delete(self, key):
        await super().delete(key)
        return True


class Unsorted(Storage):
    async def list(self, prefix=""):
        return [key for key, *_ in self.items.values() if key.startswith(prefix)]


class ListsContaining(Storage):
    async def list(self, prefix=""):
        return sorted(key for key, *_ in self.items.values() if prefix in key)


class MixesWrites(Storage):
    async def write(self, key, data):
        await super().write(key, data)
        for _ in range(10 - data[0] % 10):
            await asyncio.sleep(0)

        half = len(data) // 2
        await super().write(key, (await self.read(key))[:half] + data[half:])


class OneLoop(Storage):
    loop = None

    async def read(self, key):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")

        return await super().read(key)


class NotDurable(Storage):
    def __init__(self, items=None):
        super().__init__()


class EmptiesFirst(Storage):
    async def write(self, key, data):
        self.items.pop(key, None)
        await super().write(key, data)


class RaisesOsErrors(Storage):
    async def write(self, key, data):
        if self.full:
            raise OSError("disk full")

        await super().write(key, data)


class NeverLooks(Storage):
    async def read(self, key):
        found = self.items.get(key)
        return None if found is None else found[1]
