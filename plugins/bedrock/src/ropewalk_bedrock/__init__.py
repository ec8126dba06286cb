"""Models of Amazon Bedrock, through boto3's Converse operations. Importing this loads no boto3."""

from __future__ import annotations

from ropewalk_bedrock.model import BedrockModel
from ropewalk_bedrock.plugin import BedrockPlugin
from ropewalk_bedrock.settings import DEFAULT_MODEL, CacheConfig, Settings

__all__ = ["DEFAULT_MODEL", "BedrockModel", "BedrockPlugin", "CacheConfig", "Settings"]
