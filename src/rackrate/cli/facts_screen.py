"""The screens of ``facts``: sources of numbers, lists of what is known, problems in files, folders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.sections import warnings

if TYPE_CHECKING:
    from rackrate.app.wire.facts import (
        FactsCheckDocument,
        FactsListDocument,
        FactsPathDocument,
        FactsShowDocument,
        OwnPriceDoc,
        SaidDoc,
    )
    from rackrate.app.wire.parts import Document, FindingDoc

# ---------------------------------------------------------------- show

_SAID = ("quantity", "value", "unit", "condition", "kind", "used", "step", "own", "source", "seen_at", "note")


def show_table(document: FactsShowDocument) -> Table:
    """A row for each source of each quantity."""
    rows = tuple(tuple(_plain(getattr(said, key)) for key in _SAID) for said in document.facts)
    return Table(keys=_SAID, titles=_SAID, rows=rows)


def show_screen(document: FactsShowDocument) -> Iterator[Part]:
    """Quantities with their values; a source is written out once and cited by its number."""
    yield f"{document.id}: {document.title}, {_article(document.kind)}"
    yield ""
    sources = list(dict.fromkeys(said.source for said in document.facts))
    heads = ("quantity", "value", "known", "counts", "source")
    rows = tuple(
        (said.quantity, _value(said), said.kind, _counts(said), f"[{sources.index(said.source) + 1}]")
        for said in document.facts
    )
    if rows:
        yield drawn(Table(keys=heads, titles=heads, rows=rows))
        yield ""
        yield pairs([(f"  [{number}]", source or "no source") for number, source in enumerate(sources, start=1)])
    else:
        yield "Nothing is known of it but its name: no description, no billing rule, no price of your own."
    yield from _told(document.warnings)
    yield _footer(document)


def _value(said: SaidDoc) -> str:
    condition = f" ({said.condition})" if said.condition else ""
    unit = said.unit.removeprefix("bool").strip()  # "true" says it; what follows is a remark
    return f"{said.value} {unit}".rstrip() + condition


def _counts(said: SaidDoc) -> str:
    """Whether a row counts, and against the others why."""
    why = words.STEPS[said.step][0 if said.used else 1]
    return ("yes" if said.used else "no") + (f": {why}" if why else "")


def _article(kind: str) -> str:
    what = {"format": "weight format"}.get(kind, kind)
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


# ---------------------------------------------------------------- list

_LISTED = ("kind", "id", "title", "own")
_KINDS = ("kind", "known", "own")


def list_table(document: FactsListDocument) -> Table:
    """A row for each thing, or for each kind of thing when none was asked for."""
    if not document.items:
        counts = tuple((each.kind, str(each.known), str(each.own)) for each in document.kinds)
        return Table(keys=_KINDS, titles=_KINDS, rows=counts, right=frozenset({1, 2}))
    rows = tuple((each.kind, each.id, each.title, _plain(each.own)) for each in document.items)
    return Table(keys=_LISTED, titles=_LISTED, rows=rows)


def list_screen(document: FactsListDocument) -> Iterator[Part]:
    """Ids and titles; own ones are marked."""
    if not document.items:
        yield drawn(list_table(document))
        yield "`rackrate facts list KIND` lists them, `rackrate facts show ID` shows one with its sources."
    else:
        rows = tuple((each.id, each.title, "own" if each.own else "") for each in document.items)
        yield drawn(Table(keys=("id", "title", "own"), titles=("id", "title", ""), rows=rows))
    yield from _told(document.warnings)
    yield _footer(document)


# ---------------------------------------------------------------- check

_PRICES_AT_MOST = 20
_PROBLEM = ("severity", "code", "subject", "observed", "expected", "action")


def check_table(document: FactsCheckDocument) -> Table:
    """A row for each problem and note."""
    found = (*document.problems, *document.notes)
    return Table(keys=_PROBLEM, titles=_PROBLEM, rows=tuple(tuple(getattr(f, k) for k in _PROBLEM) for f in found))


def check_screen(document: FactsCheckDocument) -> Iterator[Part]:
    """Problems first, each with its place and the next step; then counts, and what became of own prices."""
    for problem in document.problems:
        yield pairs([(f"{problem.subject}", _problem(problem))])
    if document.problems:
        yield ""
    heads = ("file", "bundled", "your own", "left out")
    rows = tuple((each.file, str(each.bundled), str(each.own), str(each.left_out)) for each in document.files)
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=frozenset({1, 2, 3})))
    yield ""
    if document.prices:
        yield "Your prices, and what was taken where they say nothing:"
        yield pairs([_price(price) for price in document.prices[:_PRICES_AT_MOST]], style=PLAIN)
        more = len(document.prices) - _PRICES_AT_MOST
        yield f"{more} more: --json, under prices." if more > 0 else ""
    for note in document.notes:
        yield pairs([(note.subject, _problem(note))], style=PLAIN)
    count = len(document.problems)
    yield f"{count or 'No'} problem{'' if count == 1 else 's'} in {_where(document)}."
    yield _footer(document)


def _problem(finding: FindingDoc) -> str:
    text = finding.code.replace("_", " ") + (f": {finding.observed}" if finding.observed else "")
    text += f"; expected {finding.expected}" if finding.expected else ""
    return f"{text}; next: {finding.action}" if finding.action else text


def _where(document: FactsCheckDocument) -> str:
    return f"the bundled files and {', '.join(document.folders)}" if document.folders else "the bundled files"


def _price(price: OwnPriceDoc) -> tuple[str, str]:
    others = price.replaces or ([price.replaced_by] if price.replaced_by else [])
    text = f"{price.provider} {price.offer} {words.word(words.STANDINGS, price.standing)} {', '.join(others)}".rstrip()
    taken = ", ".join(f"{filled.column} {filled.value}" for filled in price.filled)
    return f"  {price.place}", f"{text}; taken: {taken}" if taken else text


# ---------------------------------------------------------------- path

_FOLDER = ("folder", "named_by", "exists", "read", "files")


def path_table(document: FactsPathDocument) -> Table:
    """A row for each folder."""
    rows = tuple(
        (each.folder, each.named_by, _plain(each.exists), _plain(each.read), "|".join(each.files))
        for each in document.folders
    )
    return Table(keys=_FOLDER, titles=_FOLDER, rows=rows)


def path_screen(document: FactsPathDocument) -> Iterator[Part]:
    """The folders in their order, and how to name others."""
    for each in document.folders:
        state = "read" if each.read else "not read: RACKRATE_FACTS names others" if each.exists else "not there"
        files = f": {', '.join(each.files) or 'no file'}" if each.exists else ""
        named = "named by RACKRATE_FACTS" if each.named_by != "default" else "the usual place"
        yield each.folder
        yield f"  {named}; {state}{files}"
    yield ""
    yield "RACKRATE_FACTS names other folders, separated as those in PATH; empty, none is read."
    yield "What to put there: docs/own-facts.md; `rackrate facts check` checks it."
    yield _footer(document)


# ---------------------------------------------------------------- shared


def _told(found: list[FindingDoc]) -> Iterator[Part]:
    yield ""
    yield from warnings(found)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _footer(document: Document) -> str:
    return f"As of {document.as_of}; facts {document.facts_digest[:12]}, rackrate {document.rackrate_version}."
