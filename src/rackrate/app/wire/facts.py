"""The JSON contracts of ``rackrate facts``; apart from the others, which every start reads."""

from __future__ import annotations

from rackrate.app.wire.parts import Document, FindingDoc, Part


class SaidDoc(Part, frozen=True, kw_only=True):
    """One source's word on one quantity: whether it counts, and by which step of the rule."""

    quantity: str
    value: str
    unit: str
    condition: str
    kind: str
    used: bool
    step: str
    own: bool
    source: str
    seen_at: str
    note: str


class FactsShowDocument(Document, frozen=True, kw_only=True):
    """Answer of ``facts show``: every number of one thing with every source, also those that do not count."""

    kind: str
    id: str
    title: str
    facts: list[SaidDoc]
    warnings: list[FindingDoc]


class ListedDoc(Part, frozen=True, kw_only=True):
    """One thing that is known."""

    kind: str
    id: str
    title: str
    own: bool


class KindDoc(Part, frozen=True, kw_only=True):
    """How many things of a kind are known, and how many of them the user describes."""

    kind: str
    known: int
    own: int


class FactsListDocument(Document, frozen=True, kw_only=True):
    """Answer of ``facts list``: the things of the kind asked for, or the kinds."""

    kinds: list[KindDoc]
    items: list[ListedDoc]
    warnings: list[FindingDoc]


class CheckedDoc(Part, frozen=True, kw_only=True):
    """A file: rows bundled, own rows that count, own rows that were left out."""

    file: str
    bundled: int
    own: int
    left_out: int


class FilledDoc(Part, frozen=True, kw_only=True):
    """A column that an own price leaves open, and what is taken instead."""

    column: str
    value: str


class OwnPriceDoc(Part, frozen=True, kw_only=True):
    """What became of an own price: ``stands`` beside the bundled ones, ``replaces`` some, or is ``replaced``."""

    place: str
    provider: str
    offer: str
    offer_id: str
    standing: str
    replaces: list[str]
    replaced_by: str | None
    filled: list[FilledDoc]


class FactsCheckDocument(Document, frozen=True, kw_only=True):
    """Answer of ``facts check``: what is wrong with bundled and own files, how many rows there are, what is assumed."""

    folders: list[str]
    good: bool
    files: list[CheckedDoc]
    problems: list[FindingDoc]
    notes: list[FindingDoc]
    prices: list[OwnPriceDoc]


class FolderDoc(Part, frozen=True, kw_only=True):
    """A folder where own facts are looked for: what names it, whether it is there and read, the files in it."""

    folder: str
    named_by: str
    exists: bool
    read: bool
    files: list[str]


class FactsPathDocument(Document, frozen=True, kw_only=True):
    """Answer of ``facts path``: where own facts are looked for, the first folder before the others."""

    folders: list[FolderDoc]


DOCUMENTS: dict[str, type[Document]] = {
    "facts_check": FactsCheckDocument,
    "facts_show": FactsShowDocument,
    "facts_list": FactsListDocument,
    "facts_path": FactsPathDocument,
}
