"""The use cases ``facts list`` and ``facts path``: what is known, and where own facts are looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from rackrate.app.context import FOLDERS, Context, context, laid, own_files, own_folders, usual_folder
from rackrate.app.documents import finding_docs, header
from rackrate.app.wire.facts import FactsListDocument, FactsPathDocument, FolderDoc, KindDoc, ListedDoc
from rackrate.problems import Code, Finding, Refused, nearest

KINDS = ("cards", "models", "engines", "formats", "providers")
_FILES = {
    "cards": "accelerators.csv",
    "models": "models.csv",
    "formats": "formats.csv",
    "providers": "providers.csv",
}


def list_facts(kind: str | None = None, *, at: date | None = None) -> FactsListDocument:
    """The things of ``kind`` (cards, models, engines, formats, providers) that are known; without one, the kinds.

    Raises:
        Refused: there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise Refused([_no_kind(kind)])
    here = context(at)
    own = _own_ids(here)
    listed = {each: _titles(each, here) for each in KINDS}
    kinds = [KindDoc(kind=each, known=len(listed[each]), own=len(own[each])) for each in KINDS if kind in {None, each}]
    items = listed[kind] if kind else {}
    return FactsListDocument(
        **header("facts_list", here),
        kinds=kinds,
        items=[ListedDoc(kind=kind or "", id=i, title=title, own=i in own[kind or ""]) for i, title in items.items()],
        warnings=finding_docs(here.findings),
    )


def _no_kind(kind: str) -> Finding:
    close = nearest(kind, KINDS)
    action = f"did you mean {close[0]}?" if close else "leave it out to see how many there are of each"
    return Finding(code=Code.UNKNOWN_NAME, subject="kind", observed=kind, expected=", ".join(KINDS), action=action)


def _titles(kind: str, here: Context) -> Mapping[str, str]:
    """Titles by id."""
    book = here.book
    if kind == "cards":
        return {card.id: f"{card.vendor} {card.product}" for card in book.accelerators.values()}
    if kind == "models":
        return {name: book.model(name).family for name in book.model_ids}
    if kind == "engines":
        return {name: book.engine(name).title for name in book.engine_ids}
    if kind == "formats":
        return {name: format_.title for name, format_ in book.formats.items()}
    return dict(sorted(_providers(here).items()))


def _providers(here: Context) -> dict[str, str]:
    """Providers that are described, have rules, or sell something."""
    from rackrate.facts.bundled import providers

    book = here.book
    sellers = {book.provider_ids.get(name, name) for name in here.catalog.table.providers}
    described = {one.id: one.title for one in providers()} | _own_titles()
    return {name: described.get(name, name) for name in {*described, *book.billing, *sellers}}


def _own_titles() -> dict[str, str]:
    own = own_files()
    rows = laid(own).facts.rows["providers.csv"] if own else ()
    return {row.cells["id"]: row.cells["title"] for row in reversed(rows)}


def _own_ids(here: Context) -> dict[str, frozenset[str]]:
    """The ids that the user's own files describe, by kind; of providers also those with own rules or prices."""
    own = own_files()
    if own is None:
        return dict.fromkeys(KINDS, frozenset())
    over = laid(own)
    ids = {kind: frozenset(row.cells["id"] for row in over.facts.rows[file]) for kind, file in _FILES.items()}
    rules = (row.cells["provider"] for row in over.facts.rows["billing_rules.csv"])
    sellers = (over.book.provider_ids.get(one.line.cells[0], one.line.cells[0]) for one in here.catalog.own)
    cards = (row.cells["accelerator"] for row in over.facts.rows["accelerator_facts.csv"])
    return ids | {
        "cards": ids["cards"] | frozenset(cards),
        "providers": ids["providers"] | frozenset(rules) | frozenset(sellers),
        "engines": frozenset(each.engine.id for each in over.facts.engines),
    }


# ---------------------------------------------------------------- folders


def facts_path(*, at: date | None = None) -> FactsPathDocument:
    """Where own facts are looked for, and what was found there."""
    return FactsPathDocument(**header("facts_path", context(at)), folders=list(_folders()))


def _folders() -> Iterator[FolderDoc]:
    read, usual = own_folders(), str(usual_folder())
    for folder in read:
        if folder != usual:
            yield _folder(folder, FOLDERS, read=True)
    yield _folder(usual, "default", read=usual in read)


def _folder(folder: str, named_by: str, *, read: bool) -> FolderDoc:
    from rackrate.app.overlay import files_of

    exists = Path(folder).is_dir()
    return FolderDoc(
        folder=folder, named_by=named_by, exists=exists, read=read and exists, files=files_of(folder) if exists else []
    )
