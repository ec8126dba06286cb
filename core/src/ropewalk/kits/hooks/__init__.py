"""The hook machinery: pluggy validates and orders, the kernel awaits."""

from __future__ import annotations

from ropewalk.kits.hooks.activation import assemble, describe_plugins, order_of, owner_of, owners_of, require_owner
from ropewalk.kits.hooks.blueprint import Link, Plan, blueprint
from ropewalk.kits.hooks.facade import Hooks

__all__ = [
    "Hooks",
    "Link",
    "Plan",
    "assemble",
    "blueprint",
    "describe_plugins",
    "order_of",
    "owner_of",
    "owners_of",
    "require_owner",
]
