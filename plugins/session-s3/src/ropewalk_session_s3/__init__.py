"""Sessions in an S3 bucket. Importing this loads no boto3."""

from __future__ import annotations

from ropewalk_session_s3.manager import S3SessionManager
from ropewalk_session_s3.plugin import S3SessionPlugin
from ropewalk_session_s3.store import S3LogStore

__all__ = ["S3LogStore", "S3SessionManager", "S3SessionPlugin"]
