"""Documents to JSON text."""

from __future__ import annotations

import msgspec


def to_json(document: object) -> str:
    """A document as indented JSON (UTF-8, keys in their declared order)."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
