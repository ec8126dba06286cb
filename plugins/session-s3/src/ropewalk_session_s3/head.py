"""The head of a log: the one object that says which generation of segments counts, and who may write.

Lease and generation stand in one object, so that one conditional write decides about both: nobody can exchange the
generation of a log that somebody else has taken meanwhile.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ropewalk.kits.sessions import LogKey, SessionDamagedError, SessionException

VERSION: Final = 1
_GENERATION_BITS: Final = 60


@dataclass(frozen=True, slots=True)
class Head:
    """What the object holds.

    Attributes:
        key: Whose log it is.
        generation: Names the segments that count.
        old: Generations that were replaced; their objects may still have to be deleted.
        holder: Who has the lease; None when nobody has.
        seconds: How long the lease lasts after each write of this object.
        nonce: Makes each free head another one. An ETag is a digest: it would come back after somebody else's run.
    """

    key: LogKey
    generation: int
    old: tuple[int, ...] = ()
    holder: dict[str, Any] | None = None
    seconds: float = 0.0
    nonce: str = ""

    def to_bytes(self) -> bytes:
        """The object's body."""
        return json.dumps(
            {
                "v": VERSION,
                "session_id": self.key.session_id,
                "agent_id": self.key.agent_id,
                "generation": name_of(self.generation),
                "old": [name_of(old) for old in self.old],
                "lease": {**self.holder, "seconds": self.seconds} if self.holder is not None else None,
                "nonce": self.nonce,
            },
            indent=1,
        ).encode()

    @classmethod
    def from_bytes(cls, body: bytes, what: str) -> Head:
        """The head of an object's body.

        Args:
            body: The body.
            what: Names the object in errors.

        Raises:
            SessionDamagedError: It is none.
            SessionException: It is a newer version's.
        """
        try:
            value = json.loads(body)
            if value["v"] > VERSION:
                raise SessionException(
                    f"{what} is of version {value['v']}, and this is {VERSION}: "
                    "pip install --upgrade ropewalk-session-s3"
                )

            lease = value["lease"]
            return cls(
                LogKey(value["session_id"], value["agent_id"]),
                int(value["generation"], 16),
                tuple(int(old, 16) for old in value["old"]),
                {name: lease[name] for name in lease if name != "seconds"} if lease is not None else None,
                float(lease["seconds"]) if lease is not None else 0.0,
                str(value.get("nonce", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SessionDamagedError(
                f"{what} is damaged ({error}): restore it from a backup; nothing was changed"
            ) from error

    def leased(self, seconds: float) -> Head:
        """The same with a lease of this process."""
        return replace(self, holder={**_process(), "token": secrets.token_hex(8)}, seconds=seconds)

    def free(self) -> Head:
        """The same without a lease."""
        return replace(self, holder=None, seconds=0.0, nonce=secrets.token_hex(8))

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process has written the lease."""
        return self.holder is not None and _host() != "" and {**self.holder, **_process()} == self.holder

    def is_taken(self, age: float) -> bool:
        """Whether somebody who may be alive has the lease.

        Args:
            age: Seconds since the head was written.
        """
        return self.holder is not None and age <= self.seconds and not _has_died(self.holder)


def new_generation() -> int:
    """Names new segments."""
    return secrets.randbits(_GENERATION_BITS) or 1


def name_of(generation: int) -> str:
    """A generation in the keys of its segments."""
    return f"{generation:015x}"


def _process() -> dict[str, Any]:
    return {"host": _host(), "pid": os.getpid(), "began": _began(os.getpid())}


def _has_died(holder: dict[str, Any]) -> bool:
    """Whether the holder was a process of this machine that is there no more; others are believed until they expire."""
    pid, host = holder.get("pid"), holder.get("host")
    return type(pid) is int and host != "" and host == _host() and _began(pid) != holder.get("began")


@lru_cache(maxsize=1)
def _host() -> str:
    """Names this machine since its start, and the view of processes in it; empty where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - no file's path
    except OSError:
        return ""


def _began(pid: int) -> str:
    """When a process began, so that another one of the same number is not taken for it; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""

    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]
