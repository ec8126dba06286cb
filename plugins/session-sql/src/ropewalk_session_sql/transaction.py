"""Statements inside one transaction, in the words of either database.

They go to the driver as they are: compiling SQLAlchemy's expressions would cost more than running them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


class Transaction:
    """Runs statements, with `?` where values go.

    Args:
        connection: Where they run.
        dialect: `"sqlite"` or `"postgresql"`.
    """

    __slots__ = ("_connection", "dialect")

    def __init__(self, connection: Connection, dialect: str) -> None:
        self._connection = connection
        self.dialect = dialect

    def execute(self, statement: str, *values: Any) -> int:
        """Runs a statement; how many rows it has changed."""
        return self._connection.exec_driver_sql(self._spelled(statement), values).rowcount

    def many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Runs a statement once for each row."""
        if len(rows) == 1:
            self.execute(statement, *rows[0])
        elif rows:
            self._connection.exec_driver_sql(self._spelled(statement), list(rows))

    def rows(self, statement: str, *values: Any) -> Sequence[Any]:
        """What a query finds."""
        return self._connection.exec_driver_sql(self._spelled(statement), values).fetchall()

    def _spelled(self, statement: str) -> str:
        return statement if self.dialect == "sqlite" else statement.replace("?", "%s")
