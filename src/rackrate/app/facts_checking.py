"""The use case ``facts check``: bundled and own files held against the rules, with what was assumed and replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from rackrate.app.context import Context, context_of, laid, own_files
from rackrate.app.documents import finding_docs, header
from rackrate.app.fact_files import check
from rackrate.app.overlay import ENGINES, KINDS, OFFERS, REGIONS, Laid, Own, read, tables_of
from rackrate.app.wire.facts import CheckedDoc, FactsCheckDocument, FilledDoc, OwnPriceDoc
from rackrate.facts import bundled
from rackrate.facts.own_rows import OwnRow
from rackrate.offers import catalog
from rackrate.offers.own_standing import Standing
from rackrate.problems import Code, Finding, Severity, nearest


def check_facts(folder: str | None = None, *, at: date | None = None) -> FactsCheckDocument:
    """What is wrong with the bundled files and with those of ``folder`` (else: of the folders that are read).

    >>> from rackrate import api
    >>> api.check_facts().good
    True
    """
    own = own_files() if folder is None else read([folder])
    here = context_of(own, at)
    over = laid(own) if own else None
    problems = [*_bundled().problems, *here.catalog.findings, *(over.findings if over else ())]
    counts = {**_bundled().rows, OFFERS: len(here.catalog.table) - len(here.catalog.own)}
    return FactsCheckDocument(
        **header("facts_check", here),
        folders=list(own.folders) if own else [],
        good=not problems,
        files=list(_files(counts, own, over)),
        problems=finding_docs(problems),
        notes=finding_docs(_notes(here)),
        prices=[_price(one, here) for one in here.catalog.own],
    )


class Bundled(NamedTuple):
    """Rows of each bundled file, and what is wrong with them."""

    rows: Mapping[str, int]
    problems: tuple[Finding, ...]


@lru_cache(maxsize=1)
def _bundled() -> Bundled:
    """The bundled files, checked once."""
    found = check(bundled.DATA, catalog.DATA)
    return Bundled({**found.facts, ENGINES: found.engines, REGIONS: found.places}, found.findings)


# ---------------------------------------------------------------- counts


def _files(counts: Mapping[str, int], own: Own | None, over: Laid | None) -> Iterator[CheckedDoc]:
    kept: dict[str, Sequence[OwnRow] | Sequence[object]] = {}
    if over is not None:
        kept = {**over.facts.rows, ENGINES: over.facts.engines, OFFERS: over.prices.rows, REGIONS: over.prices.regions}
    said = _rows_said(own)
    for name in (*counts, *(kind for kind in KINDS if kind not in counts)):
        mine = len(kept.get(name, ()))
        left_out = max(said.get(name, 0) - mine, 0)
        yield CheckedDoc(file=name, bundled=counts.get(name, 0), own=mine, left_out=left_out)


def _rows_said(own: Own | None) -> dict[str, int]:
    """Rows (of engines: files) in the user's folders, headers and blank lines aside."""
    said = {ENGINES: sum(file.kind == ENGINES for file in own.files) if own else 0}
    for table in tables_of(own, []) if own else ():
        said[table.name] = said.get(table.name, 0) + max(len(table.lines) - 1, 0)
    return said


# ---------------------------------------------------------------- own prices


def _price(one: Standing, here: Context) -> OwnPriceDoc:
    record = here.catalog.table.record
    offer = record(one.row)
    standing = "replaces" if one.replaces else "replaced" if one.replaced_by >= 0 else "stands"
    return OwnPriceDoc(
        place=f"{one.line.row.place}:{one.line.row.line}",
        provider=offer.provider,
        offer=offer.name,
        offer_id=offer.id,
        standing=standing,
        replaces=[record(row).id for row in one.replaces],
        replaced_by=record(one.replaced_by).id if one.replaced_by >= 0 else None,
        filled=[FilledDoc(column=column, value=value) for column, value in one.line.filled],
    )


def _notes(here: Context) -> Iterator[Finding]:
    """What is no fault but may not be meant: prices that do not count, sellers whose names look like another's."""
    table, book = here.catalog.table, here.book
    known = {*table.providers[: _bundled_providers(here)], *book.billing, *book.provider_ids}
    told: set[str] = set()
    for one in here.catalog.own:
        place, provider = f"{one.line.row.place}:{one.line.row.line}", one.line.cells[0]
        if one.replaced_by >= 0:
            other = table.record(one.replaced_by)
            seen = f"older than {other.price.amount:f} {other.price.currency} of {other.observed_on} ({other.id})"
            action = "write negotiated into the column flags if yours holds"
            yield _note(Code.OFFERS_DISAGREE, f"{place} observed_on", seen, action)
        if provider not in known | told:
            told.add(provider)
            close = nearest(provider, known)
            if close:
                yield _note(Code.UNKNOWN_NAME, f"{place} provider", provider, f"did you mean {' or '.join(close)}?")


def _bundled_providers(here: Context) -> int:
    """How many providers come before the first that only own prices name."""
    table, own = here.catalog.table, len(here.catalog.own)
    codes = table.provider[: len(table) - own]
    return int(codes.max(initial=-1)) + 1


def _note(code: Code, subject: str, observed: str, action: str) -> Finding:
    return Finding(code=code, subject=subject, severity=Severity.INFO, observed=observed, action=action)
