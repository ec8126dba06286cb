"""The session manager: the plugin between an agent's log and a store. Each session plugin brings one with its store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.aio.threads import in_thread
from ropewalk.kits.hooks.parameters import KNOWN_PLUGINS
from ropewalk.kits.log.fold import LogState, fold
from ropewalk.kits.log.records import Record
from ropewalk.kits.sessions.erasure import erased, redactions
from ropewalk.kits.sessions.errors import SessionConflictError, SessionException
from ropewalk.kits.sessions.retention import Gathering, Retention, compacted
from ropewalk.kits.sessions.store import Lease, LogKey, LogStore
from ropewalk.markers import hookimpl

if TYPE_CHECKING:
    from ropewalk.agent import Agent

logger = logging.getLogger("ropewalk.sessions")


class _Open:
    """An agent's log, as far as this process knows it."""

    __slots__ = ("gathering", "key", "lease", "paused", "position", "running", "unheard", "unsure")

    def __init__(self, key: LogKey, position: int) -> None:
        self.key = key
        self.position = position
        self.lease: Lease | None = None
        self.running = False
        self.paused = False
        self.gathering = Gathering()
        self.unsure: list[Record] | None = None  # what a replacement that failed may have put there all the same
        self.unheard: Sequence[Record] = ()  # what is written, and given again by who was interrupted before it knew

    def new(self, records: Sequence[Record]) -> Sequence[Record]:
        """Those of the records that are not written yet."""
        there, self.unheard = self.unheard, ()
        return [each for each in records if not any(each is known for known in there)] if there else records

    def follow(self, records: Sequence[Record]) -> None:
        """Notes where the agent's run stands after records."""
        for record in records:
            if not record.path and record.kind in ("run_started", "run_resumed"):
                self.running, self.paused = True, False
            elif not record.path and record.kind in ("run_ended", "run_suspended"):
                self.running, self.paused = False, record.kind == "run_suspended"


class SessionManager:
    """Keeps the conversations of a session: messages, state, plugins' state, paused and broken-off runs.

    Agents of one session are told apart by `agent_id`. An agent that is built with a manager whose session has a log
    of its id goes on where that log ends; what it was constructed with is dropped then.

    Args:
        session_id: Names the session; any text that is not blank.
        store: Keeps the logs.
        retention: How much is kept record by record.

    Raises:
        SessionException: The id is no text, or blank.
    """

    name = "session"

    def __init__(self, session_id: str, store: LogStore, retention: Retention | None = None) -> None:
        if not isinstance(session_id, str) or not session_id.strip():
            raise SessionException(f"session_id={session_id!r}: give a text that is not blank")

        self.session_id = session_id
        self.store = store
        self.retention = retention or Retention()
        self._open: WeakKeyDictionary[Agent, _Open] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session_id={self.session_id!r})"

    @hookimpl
    def adopt(self, parameter: str, value: Any) -> NoReturn:
        """Refuses what is no session manager: a manager is a plugin, which nobody is asked to adopt.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            f"{parameter}={value!r} is no session manager: give FileSessionManager(session_id=...), or another plugin "
            "with read_records and write_records"
        )

    @hookimpl
    def read_records(self, agent: Agent) -> LogState | None:
        """Reads the agent's log.

        Raises:
            SessionException: Another agent of this manager has the id, or the log cannot be read.
        """
        key = LogKey(self.session_id, agent.agent_id)
        with self._lock:
            if any(other.key == key and owner is not agent for owner, other in self._open.items()):
                raise SessionException(
                    f"session {self.session_id!r} has an agent {agent.agent_id!r} already: "
                    "give each agent of a session its own agent_id"
                )

            log = self._open[agent] = _Open(key, 0)

        try:
            return self._opened(agent, log)
        except BaseException:
            self._forget(agent)
            raise

    def _opened(self, agent: Agent, log: _Open) -> LogState | None:
        found = self.store.read(log.key)
        for line in found.report if found is not None else ():
            logger.warning("session %r, agent %r: %s", self.session_id, agent.agent_id, line)

        log.position = found.position if found is not None else 0
        if found is None or not found.records:
            return None

        try:
            state = fold(LogState(), found.records)
        except ValueError as error:
            raise SessionException(
                f"session {self.session_id!r}, agent {agent.agent_id!r}: {error}; "
                "open it with the version that wrote it"
            ) from error

        self._name_missing(state, agent)
        return state

    @hookimpl
    async def write_records(self, records: Sequence[Record], agent: Agent) -> None:
        """Stores records before the run goes on.

        Raises:
            SessionConflictError: Another writer has the session.
            SessionException: It cannot be written.
        """
        log, due, written = self._log(agent), False, False
        records = log.new(records)
        if not records:
            return

        if log.lease is None:
            log.lease = await self.store.lease(log.key)

        try:
            await self._make_sure(log)
            named = redactions(records)
            if named:
                await self._erase(log, records, named)
            else:
                log.position = await self.store.append(log.key, records, log.position)

            log.unsure = None
            log.follow(records)
            written, due = True, log.gathering.add(len(records))
        except BaseException:
            log.running = False  # the lease is free for others; positions tell when one of them has written
            raise
        finally:
            if not log.running:
                log.unheard = records if written else ()
                await self._leave(log, fold=due and not log.paused)
                log.unheard = ()

    @hookimpl
    async def on_close(self, agent: Agent) -> None:
        """Writes what was changed since the last run, and forgets the agent: another one may have its id then."""
        if agent in self._open and agent.log is not None:
            await agent.log.write_changes(
                current_seam().new_id("run_"), lambda records: self.write_records(records, agent)
            )

        log = self._forget(agent)
        if log is not None and log.lease is not None:
            await _given_up(log.lease)

    def size(self) -> int:
        """Bytes that the session takes in its store, as far as the store can tell."""
        return sum(info.size for info in self.store.logs(self.session_id))

    async def compact(self, agent: Agent) -> None:
        """Folds what the retention does not keep; everything that is past, when it keeps all.

        Raises:
            SessionException: A run is under way or broken off, or the log cannot be written.
        """
        log = self._log(agent)
        if log.running:
            raise SessionException(f"session {self.session_id!r} is in use: compact it between runs")

        lease = await self.store.lease(log.key)
        try:
            await self._make_sure(log)
            await self._compact(log, self.retention if self.retention.limited else Retention(compact_to_latest=True))
        finally:
            await _given_up(lease)

    def _forget(self, agent: Agent) -> _Open | None:
        with self._lock:  # agents may be built in threads
            return self._open.pop(agent, None)

    def _log(self, agent: Agent) -> _Open:
        log = self._open.get(agent)
        if log is None:
            raise SessionException(
                f"agent {agent.agent_id!r} was not built with this session manager: pass session_manager= to Agent(...)"
            )

        return log

    def _name_missing(self, state: LogState, agent: Agent) -> None:
        """Names the plugins whose state is in the log and who are not there to use it."""
        there = {plugin.name for plugin in agent.hooks.plugins}
        for name in state.cells:
            if name in KNOWN_PLUGINS and name not in there:
                logger.warning(
                    "session %r, agent %r holds state of plugin %r, which the agent does not have: it is kept; "
                    "to use it: pip install %s, or add the plugin",
                    self.session_id, agent.agent_id, name, KNOWN_PLUGINS[name],
                )  # fmt: skip
            elif name not in there:
                logger.warning(
                    "session %r, agent %r holds state of %r, which is no plugin of the agent: it is kept",
                    self.session_id, agent.agent_id, name,
                )  # fmt: skip

    async def _leave(self, log: _Open, *, fold: bool) -> None:
        """The end of a run: what retention does not keep is folded, and the lease given up."""
        lease, log.lease = log.lease, None
        try:
            if fold and self.retention.limited:
                await self._compact(log, self.retention)
        except (SessionException, ValueError) as error:
            logger.warning("session %r was not compacted: %s", self.session_id, error)
        finally:
            if lease is not None:
                await _given_up(lease)

    async def _compact(self, log: _Open, retention: Retention) -> None:
        found = await in_thread(self.store.read, log.key)
        if found is None:
            return

        if found.position != log.position:
            raise SessionConflictError(
                f"session {self.session_id!r} was written by somebody else: open it again before it is compacted"
            )

        now = current_seam().time()
        records = found.records
        cut = retention.cut(records, now)
        if cut > 1:
            records = log.unsure = compacted(records, cut, now)
            log.position = await self.store.replace(log.key, records, log.position)
            log.unsure = None

        log.gathering.folded(records)

    async def _make_sure(self, log: _Open) -> None:
        """Where the log ends after a replacement whose answer was lost: nobody else has written then.

        It may still be under way, in a thread: it is looked for until something else could be written.
        """
        if log.unsure is None:
            return

        found = await in_thread(self.store.read, log.key)
        if found is not None and [each.to_json() for each in found.records] == [each.to_json() for each in log.unsure]:
            log.position, log.unsure = found.position, None

    async def _erase(self, log: _Open, records: Sequence[Record], named: Sequence[Record]) -> None:
        """Writes records together with what they erase: there is no moment with one and without the other."""
        found = await in_thread(self.store.read, log.key)
        before = found.records if found is not None else []
        if found is not None and found.position != log.position:
            at = next((i for i, each in enumerate(before) if _id(each) == _id(records[0])), len(before))
            there = [_id(each) for each in before[at:]]
            if not there or there != [_id(each) for each in records[: len(there)]]:
                raise SessionConflictError(
                    f"session {self.session_id!r} was written by somebody else: make a new agent, which reads it again"
                )

            before, log.position = before[:at], found.position  # they were written, and the answer was lost

        after = [*before, *records]
        for redaction in named:
            place = max(i for i, each in enumerate(after) if _id(each) == _id(redaction))
            after[:place] = erased(after[:place], redaction)

        log.position = await self.store.replace(log.key, after, log.position)


def _id(record: Record) -> tuple[object, ...]:
    return record.run, record.number, record.path


async def _given_up(lease: Lease) -> None:
    waiting = lease.release()
    if waiting is not None:
        await waiting
