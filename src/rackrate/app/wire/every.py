"""Every document by its kind, for what describes them all: schemas, pages, tests."""

from __future__ import annotations

from rackrate.app.wire import facts, fit, gpus, models, offers, parts, plan, simulation, speed

DOCUMENTS: dict[str, type[parts.Document]] = (
    facts.DOCUMENTS
    | fit.DOCUMENTS
    | gpus.DOCUMENTS
    | models.DOCUMENTS
    | offers.DOCUMENTS
    | parts.DOCUMENTS
    | plan.DOCUMENTS
    | simulation.DOCUMENTS
    | speed.DOCUMENTS
)
