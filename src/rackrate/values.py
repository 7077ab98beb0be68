"""Values: the base of every record that rooms hand to each other.

A record is immutable, made by keyword, compared and hashed by its fields, and
changed only by ``replace``, which makes a new one. The base is a
``msgspec.Struct`` and not a dataclass because rackrate is a command line tool:
see docs/decisions/0010-values-are-structs.md for the measurement.
"""

from __future__ import annotations

import msgspec
from msgspec import field
from msgspec.structs import replace

__all__ = ["Value", "field", "replace"]


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable record; subclasses repeat ``frozen=True, kw_only=True``, which msgspec does not pass on."""
