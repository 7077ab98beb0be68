"""Every document by its kind, for what describes them all: schemas, pages, tests."""

from __future__ import annotations

from rackrate.app import wire, wire_facts, wire_fit, wire_models, wire_offers, wire_speed

DOCUMENTS: dict[str, type[wire.Document]] = (
    wire.DOCUMENTS
    | wire_facts.DOCUMENTS
    | wire_fit.DOCUMENTS
    | wire_models.DOCUMENTS
    | wire_offers.DOCUMENTS
    | wire_speed.DOCUMENTS
)
