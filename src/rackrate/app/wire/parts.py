"""The JSON contracts: what every document that rackrate prints looks like.

Money is a decimal string with its currency; sizes are bytes; times are hours
or seconds as named. Keys, ids and codes are never translated. A change that
breaks a reader raises the number in ``schema``.
"""

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


class FindingDoc(Part, frozen=True, kw_only=True):
    """One problem as a value."""

    code: str
    severity: str
    subject: str
    observed: str
    expected: str
    action: str


class AssumptionDoc(Part, frozen=True, kw_only=True):
    """A default that was made."""

    key: str
    value: str
    why: str
    explanation: str


class ComponentDoc(Part, frozen=True, kw_only=True):
    """A named part of the memory of the fullest card."""

    name: str
    phase: str
    bytes: RangeDoc
    note: str


class ChangeDoc(Part, frozen=True, kw_only=True):
    """One setting to change, from what to what, and the peak it leads to where that was computed."""

    knob: str
    before: str
    after: str
    peak_bytes: RangeDoc | None = None


class CacheDoc(Part, frozen=True, kw_only=True):
    """Room for the KV cache on one replica."""

    bytes_per_token: float
    room_bytes: RangeDoc
    tokens: RangeDoc
    context_tokens: int
    full_sequences: int


class PhaseDoc(Part, frozen=True, kw_only=True):
    """Peak of one phase, as the driver sees it."""

    phase: str
    bytes: RangeDoc


class WorkloadDoc(Part, frozen=True, kw_only=True):
    """The workload as it was understood, defaults included; sizes that do not apply are null."""

    task: str
    model: str
    engine: str
    precision: str
    weight_format: str
    context_tokens: int | None
    batch: int
    tokens: float | None = None
    image_width: int | None = None
    image_height: int | None = None
    images: float | None = None
    steps: int | None = None
    frames: int | None = None
    offload: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    audio_seconds: float | None = None
    beams: int | None = None
    concurrency: int | None = None
    requests: float | None = None
    requests_per_s: float | None = None
    online: bool | None = None
    horizon_hours: float | None = None


class FactDoc(Part, frozen=True, kw_only=True):
    """One fact of a card."""

    quantity: str
    value: float
    unit: str
    condition: str
    kind: str
    source: str
    note: str


class ProblemDocument(Document, frozen=True, kw_only=True):
    """What a refused request says when ``--json`` was asked for."""

    problems: list[FindingDoc]


DOCUMENTS: dict[str, type[Document]] = {"problems": ProblemDocument}
