"""What a database URL says, and the default one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ropewalk.kits.sessions import SessionException

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

DEFAULT_FILE: Final = Path(".ropewalk") / "sessions" / "sessions.sqlite3"
_EXAMPLES: Final = "give sqlite:///path/to/file, or postgresql://user:password@host/database"


def parsed(url: str | None) -> URL:
    """The URL, with the driver that is used.

    Args:
        url: The URL; None for a SQLite file in the home folder.

    Raises:
        SessionException: It is none, or of a database that this cannot use.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.engine.url import URL
    from sqlalchemy.exc import ArgumentError

    if url is None:
        return URL.create("sqlite", database=str(Path.home() / DEFAULT_FILE))

    try:
        found = make_url(url)
    except (ArgumentError, ValueError, TypeError, AttributeError) as error:
        # the text is not repeated: a password may be in it
        raise SessionException(f"url is no database URL: {_EXAMPLES}") from error

    if found.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return found.set(drivername="postgresql+psycopg")

    if found.drivername in ("sqlite", "sqlite+pysqlite") and not (found.database or "").startswith("file:"):
        return found.set(drivername="sqlite")

    shown = found.render_as_string(hide_password=True)
    raise SessionException(f"url={shown!r}: SQLite and PostgreSQL (through psycopg) can keep sessions; {_EXAMPLES}")


def file_of(url: URL) -> Path | None:
    """The file of a SQLite database; None for one in memory."""
    database = url.database
    return Path(database).absolute() if database and database != ":memory:" else None
