"""The JSON contracts of ``rackrate offers``; apart from the others, which every start reads."""

from __future__ import annotations

from rackrate.app.wire.parts import ChangeDoc, Document, FindingDoc, Part


class AccessDoc(Part, frozen=True, kw_only=True):
    """What is known to stand between a renter and a provider, with the condition under which it holds."""

    key: str
    value: str
    unit: str
    condition: str
    seen_at: str
    source: str


class BillingDoc(Part, frozen=True, kw_only=True):
    """How an offer's time is billed.

    ``step_s`` and ``minimum_s`` are null where no rule was seen. ``stop`` is what stopping does:
    ``ends_billing``, ``goes_on`` (compute is billed while the machine is kept), ``term_is_paid`` (whole terms,
    used or not), ``loses_term``, or ``unknown``.
    """

    step_s: float | None
    minimum_s: float | None
    stop: str


class OfferDoc(Part, frozen=True, kw_only=True):
    """One offer.

    ``cards`` are all cards that it can be, none where the card is not known. ``share`` below 1 is a
    slice. Prices are per hour of the term in ``price_currency``; those under ``shown`` are in the currency of the
    answer, null without a rate: of the whole offer, of one whole card, and of a GB as sold of its memory (null where
    the cards that it can be differ in size).
    """

    accelerator: str
    product: str
    cards: list[str]
    card_label: str
    gpus: int
    share: float
    memory_sold_gb: float | None
    form_factor: str
    provider: str
    offer: str
    offer_id: str
    region: str
    country: str
    market: str
    price_per_hour: str
    price_currency: str
    shown_per_hour: str | None
    shown_per_gpu_hour: str | None
    shown_per_gb_hour_as_sold: str | None
    term: str
    term_hours: float
    prepaid: bool
    minimum_terms: int
    billing: BillingDoc
    interruptible: bool
    stock: str
    stock_signal: str
    price_observed_at: str
    price_observed_how: str
    price_age_days: int | None
    price_source: str
    price_own: bool
    superseded: bool
    vcpus: int | None
    host_memory_bytes: float | None
    excludes: list[str]
    access: list[AccessDoc]
    warnings: list[FindingDoc]


class OfferGroupDoc(Part, frozen=True, kw_only=True):
    """Offers alike in ``by``, the cheapest of which (or the first as sorted) is listed, and their prices.

    Prices are per whole card and hour, in the currency of the answer; null without a rate.
    """

    name: str
    offers: int
    low: str | None
    median: str | None
    high: str | None


class OfferLeftOutDoc(Part, frozen=True, kw_only=True):
    """Offers that one test left out; ``alone`` of them would be listed if this test were not made.

    The cheapest of these is ``nearest``, and ``change`` is what lists it.
    """

    reason: str
    count: int
    alone: int
    nearest: OfferDoc | None
    change: ChangeDoc | None


class OfferDropDoc(Part, frozen=True, kw_only=True):
    """A filter that would let ``found`` offers in if it alone were not asked for, and the cheapest of them."""

    knob: str
    asked: str
    found: int
    nearest: OfferDoc


class OffersDocument(Document, frozen=True, kw_only=True):
    """Answer of ``offers``: the offers found, of which those listed are shown, and what was left out and why.

    With ``group_by``, ``offers`` has the first of each group, and ``groups`` says in the same order what each is.
    Where none is found, ``drops`` are the filters that would let some in.
    """

    currency: str
    rates_on: str
    rates_source: str
    considered: int
    found: int
    more: int
    sort: list[str]
    group_by: str | None
    offers: list[OfferDoc]
    groups: list[OfferGroupDoc]
    left_out: list[OfferLeftOutDoc]
    drops: list[OfferDropDoc]
    warnings: list[FindingDoc]


class OffersPackDocument(Document, frozen=True, kw_only=True):
    """Answer of ``offers pack``: the file of columns that was written, and what of the lists is not in it."""

    file: str
    size_bytes: int
    offers: int
    entries: int
    problems: list[FindingDoc]


DOCUMENTS: dict[str, type[Document]] = {"offers": OffersDocument, "offers_pack": OffersPackDocument}
