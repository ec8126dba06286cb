"""Cassettes: a run of a real model recorded once, and played again without it."""

from __future__ import annotations

from ropewalk_testing.cassettes.cassette import Cassette
from ropewalk_testing.cassettes.errors import CassetteDrift, CassetteError, MissingCassetteError
from ropewalk_testing.cassettes.redaction import REDACTED, Redactor

__all__ = ["REDACTED", "Cassette", "CassetteDrift", "CassetteError", "MissingCassetteError", "Redactor"]
