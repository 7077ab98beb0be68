"""What documents are made of: the bases of all their parts."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a document; its schema admits no other keys, so that tests catch every drift."""


class Document(Part, frozen=True, kw_only=True):
    """What every document carries."""

    schema: str
    rackrate_version: str
    facts_digest: str
    as_of: str


class RangeDoc(Part, frozen=True, kw_only=True):
    """10th, 50th and 90th percentile."""

    low: float
    likely: float
    high: float
