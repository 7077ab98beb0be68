"""Offers: one thing that someone rents out, as seen, with its price in the currency and term of the source."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from rackrate.money import Money
from rackrate.problems import Finding
from rackrate.values import Value


class Term(Value, frozen=True, kw_only=True):
    """The period that a price buys: its unit as sold and the hours it holds.

    ``unit`` is ``hour``, ``day``, ``week``, ``month``, ``year``, ``3year`` or
    ``credit_pack``. ``hours`` is what the source counts (720 or 730 for a
    month, or a credit pack's hours of this machine). ``prepaid``: whole terms
    are paid, used or not, whether before (packages) or during (commitments).
    """

    unit: str
    hours: Decimal
    prepaid: bool


class MachineShape(Value, frozen=True, kw_only=True):
    """What memory and speed depend on: card, count, share of a card.

    ``share`` below 1 is a slice (MIG, vGPU); ``bridged``: the seller says that
    bridges join cards which can also come without. Offers of the same shape
    get the same estimates.
    """

    accelerator: str
    gpus: int
    share: float = 1.0
    bridged: bool = False


def is_bridged(form_factor: str) -> bool:
    """Whether a form factor as sold (``PCIe-NVLink``) says that bridges join the cards."""
    return "nvlink" in form_factor.casefold()


class Offer(Value, frozen=True, kw_only=True):
    """One row of a price list.

    ``cards`` are the accelerator ids that the card name can mean: one, several
    when the source does not say, or none when we do not know the card.
    ``price`` is for the whole offer (all cards) and one ``term``.
    ``excludes`` names parts of the bill that the source says the price leaves
    out (``host``, ``disk``, ``traffic``, ``ip``, ``tax``); ``includes_disk_gb``
    (10^9 bytes) is disk that it covers.

    ``product`` names the thing sold where ``name`` is not the same at each
    look or seller: observations of one product form one price series, and the
    newest one replaces the others (``superseded``). ``minimum_terms`` is the
    least number of terms sold. ``commitment_unknown``: the price needs a
    commitment whose length nobody states. ``price_is_from``: the lowest of
    several prices. ``virtual_gpu``: a card reached through software, not
    passed through whole. ``validity_days``: when a credit pack lapses.
    ``own``: a user's own price; ``negotiated``: one that holds for the user
    whatever the list says.
    ``doubts`` are codes of the reasons to check the row (see ``gates``).
    """

    id: str
    provider: str
    name: str
    card_label: str
    cards: tuple[str, ...]
    gpus: int
    share: float
    form_factor: str
    region: str
    market: str
    price: Money
    term: Term
    observed_on: date
    observed_how: str
    source: str
    vcpus: int | None = None
    host_memory_bytes: float | None = None
    interruptible: bool = False
    excludes: tuple[str, ...] = ()
    note: str = ""
    findings: tuple[Finding, ...] = ()
    product: str = ""
    memory_sold_gb: float | None = None
    country: str = ""
    region_groups: tuple[str, ...] = ()
    minimum_terms: int = 1
    validity_days: int | None = None
    includes_disk_gb: Decimal = Decimal(0)
    commitment_unknown: bool = False
    price_is_from: bool = False
    virtual_gpu: bool = False
    superseded: bool = False
    own: bool = False
    negotiated: bool = False
    doubts: tuple[str, ...] = ()

    @property
    def price_per_hour(self) -> Money:
        """Price of the whole offer per hour of its term, in its own currency."""
        return Money(self.price.amount / self.term.hours, self.price.currency)

    @property
    def shapes(self) -> tuple[MachineShape, ...]:
        """The machine shapes that this offer can turn out to be."""
        bridged = is_bridged(self.form_factor)
        return tuple(MachineShape(accelerator=c, gpus=self.gpus, share=self.share, bridged=bridged) for c in self.cards)
