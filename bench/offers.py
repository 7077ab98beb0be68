"""Synthetic price lists of any length, from a seed: cards, sellers, rules and price levels of the bundled list.

Half of the offers are of clouds: a machine type in a region, on several markets, some seen on several
days. The other half are hosts of marketplaces, each with a name and a price of its own. Some have faults
that public lists have: no price, an unknown card, a price without its host or its commitment.
"""

import statistics
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.book import FactBook
from rackrate.offers.arrays import Place
from rackrate.offers.columns import Coded
from rackrate.offers.offer import Offer
from rackrate.offers.price_list import Record
from rackrate.offers.texts import Texts

NEWEST = date(2026, 11, 30)
COUNTS = ("1", "2", "4", "8")
COUNT_SHARES = (0.5, 0.15, 0.15, 0.2)
VARIANTS = 5
SHARE_WITHOUT_PRICE = 0.001
REGIONS_AT_MOST = 16
MARKETPLACES = ("vast", "tensordock", "lium", "akash", "cudo", "openrelay")
DAYS = (0, 1, 3, 7, 14, 30, 60)
DISKS = ("", "100", "500")
"""Disk in the price, in GB: a seller's choice."""


class Market(NamedTuple):
    """How a price is sold: its share of a cloud's offers, its level, and its term."""

    name: str
    share: float
    level: float
    flags: str = ""
    term: str = "hour"
    hours: int = 1


MARKETS = (
    Market("on_demand", 0.5, 1.0),
    Market("spot", 0.2, 0.4, "interruptible"),
    Market("monthly_package", 0.1, 0.8, "", "month", 730),
    Market("reserved_1y", 0.12, 0.6, "", "year", 8760),
    Market("reserved_3y", 0.05, 0.45, "", "3year", 26280),
    Market("reserved_from", 0.02, 0.5, "price_is_from"),
    Market("commitment", 0.01, 0.5, "commitment_unknown"),
)


class Card(NamedTuple):
    """A card as price lists name it, and its median price per card and hour in USD."""

    label: str
    memory: str
    form: str
    price: float


Ints = NDArray[np.int64]


def cards_of(offers: Sequence[Offer], book: FactBook) -> list[Card]:
    """Every whole card that is sold by the hour, by name, memory and form."""
    prices: dict[tuple[str, str, str], list[float]] = {}
    for offer in offers:
        sold = not offer.term.prepaid and not offer.interruptible and offer.price.amount.is_finite()
        if sold and offer.cards and offer.share == 1 and offer.price.amount > 0:
            memory = "" if offer.memory_sold_gb is None else f"{offer.memory_sold_gb:g}"
            hourly = float(book.rates.convert(offer.price_per_hour, "USD").amount) / offer.gpus
            prices.setdefault((offer.card_label, memory, offer.form_factor), []).append(hourly)
    return [Card(*names, statistics.median(each)) for names, each in sorted(prices.items())]


def generate(count: int, book: FactBook, bundled: Sequence[Offer], *, seed: int = 1) -> Texts:
    """``count`` offers in no order, as texts by column; the same for the same seed and facts."""
    rng = np.random.default_rng(seed)
    cards = [*cards_of(bundled, book), Card("Prototype X", "", "", 1.0)]
    sellers = sorted({offer.provider for offer in bundled} - set(MARKETPLACES))
    regions = sorted({offer.region for offer in bundled if offer.region})
    hosts = _Hosts(rng, count - count // 2, len(cards), len(regions))
    clouds = _Clouds(rng, count // 2, len(cards), len(sellers), len(regions))
    both = _Both(rng, clouds, hosts)
    return both.texts(cards, sellers, regions)


def places_of(bundled: Sequence[Offer]) -> dict[tuple[str, str], Place]:
    """Where the regions lie, whoever sells there."""
    return {("*", offer.region): (offer.region, offer.country, offer.region_groups) for offer in bundled}


class _Clouds:
    """Machine types of clouds: every seller has its cards, its regions and its level of prices."""

    def __init__(self, rng: np.random.Generator, count: int, cards: int, sellers: int, regions: int) -> None:
        self.seller = rng.integers(0, sellers, count)
        stock = np.array([rng.permutation(cards - 1) for _ in range(sellers)])
        breadth = rng.integers(4, min(30, cards - 1), sellers)
        self.card = stock[self.seller, rng.integers(0, breadth[self.seller])]
        where = np.array([rng.permutation(regions)[:REGIONS_AT_MOST] for _ in range(sellers)])
        reach = rng.integers(1, REGIONS_AT_MOST + 1, sellers)
        self.region = where[self.seller, rng.integers(0, reach[self.seller])]
        self.gpus = rng.choice(len(COUNTS), count, p=COUNT_SHARES)
        self.market = rng.choice(len(MARKETS), count, p=[market.share for market in MARKETS])
        self.variant = rng.integers(0, VARIANTS, count)
        levels = rng.lognormal(0, 0.25, sellers)[self.seller] * rng.lognormal(0, 0.05, regions)[self.region]
        self.level = levels * (0.96 + 0.02 * self.variant)


class _Hosts:
    """Hosts of marketplaces: one name, one place, one price each."""

    def __init__(self, rng: np.random.Generator, count: int, cards: int, regions: int) -> None:
        self.seller = rng.integers(0, len(MARKETPLACES), count)
        self.card = rng.integers(0, cards, count)
        self.region = rng.integers(0, regions, count)
        self.gpus = rng.choice(len(COUNTS), count, p=COUNT_SHARES)
        self.market = rng.choice(2, count, p=(0.7, 0.3))
        self.variant = np.zeros(count, dtype=np.int64)
        self.level = 0.6 * rng.lognormal(0, 0.3, count)


class _Both:
    """The offers of clouds and hosts, mixed."""

    def __init__(self, rng: np.random.Generator, clouds: _Clouds, hosts: _Hosts) -> None:
        self.order = rng.permutation(len(clouds.seller) + len(hosts.seller))
        self.is_host = np.arange(len(self.order)) >= len(clouds.seller)
        self.rng, self._clouds, self._hosts = rng, clouds, hosts

    def column(self, of: Callable[[_Clouds | _Hosts], NDArray[np.generic]]) -> NDArray[np.generic]:
        """A column of both, clouds first."""
        return np.concatenate([of(self._clouds), of(self._hosts)])

    def texts(self, cards: list[Card], sellers: list[str], regions: list[str]) -> Texts:
        """The columns of the price list."""
        card, gpus, market = (self.column(of) for of in (lambda x: x.card, lambda x: x.gpus, lambda x: x.market))
        is_chinese = np.array([not seller.isascii() or seller.endswith("-cn") for seller in sellers])
        seller = np.concatenate([self._clouds.seller, self._hosts.seller + len(sellers)])
        currency = np.concatenate([is_chinese, np.zeros(len(MARKETPLACES), dtype=np.bool_)])[seller].astype(np.int64)
        level = np.array([m.level * m.hours for m in MARKETS])[market] * np.array([1.0, 7.1])[currency]
        price = np.array([c.price for c in cards])[card] * np.array([int(n) for n in COUNTS])[gpus] * level
        columns = {
            "provider": Coded([*sellers, *MARKETPLACES], seller),
            "name": self._names(cards, card, gpus),
            "card_label": Coded([c.label for c in cards], card),
            "memory_gb": Coded([c.memory for c in cards], card),
            "form_factor": Coded([c.form for c in cards], card),
            "gpus": Coded(COUNTS, gpus),
            "vcpus": Coded(("8", "16", "32", "64"), gpus),
            "host_memory_gb": Coded(("64", "128", "256", "512"), gpus),
            "region": Coded(regions, self.column(lambda x: x.region)),
            "market": Coded([m.name for m in MARKETS], market),
            "price": self._prices(price * self.column(lambda x: x.level)),
            "currency": Coded(("USD", "CNY"), currency),
            "term": Coded([m.term for m in MARKETS], market),
            "hours_in_term": Coded([str(m.hours) for m in MARKETS], market),
            "prepaid": Coded([str(m.hours > 1).lower() for m in MARKETS], market),
            "flags": Coded([m.flags for m in MARKETS], market),
            "includes_disk_gb": Coded(DISKS, self._disk_of(len(sellers) + len(MARKETPLACES))[seller]),
            "excludes": self._some(("", "host"), (0.99, 0.01)),
            "observed_on": self._some([str(NEWEST - timedelta(days=n)) for n in DAYS], [1 / len(DAYS)] * len(DAYS)),
            "observed_how": Coded(("generated",), np.zeros(len(self.order), dtype=np.int64)),
            "source": Coded(("synthetic",), np.zeros(len(self.order), dtype=np.int64)),
        }
        empty = Coded(("",), np.zeros(len(self.order), dtype=np.int64))
        return {field: self._mixed(columns.get(field, empty)) for field in Record._fields}

    def _mixed(self, column: Coded[str]) -> Coded[str]:
        return Coded(column.words, column.codes[self.order].astype(np.int32))

    def _disk_of(self, sellers: int) -> Ints:
        return self.rng.choice(len(DISKS), sellers, p=(0.8, 0.1, 0.1))

    def _some(self, words: Sequence[str], shares: Sequence[float]) -> Coded[str]:
        return Coded(words, self.rng.choice(len(words), len(self.order), p=shares))

    def _names(self, cards: list[Card], card: Ints, gpus: Ints) -> Coded[str]:
        """A cloud's machine types by card, count and variant; a host's own name."""
        types = [f"{c.label} {c.memory} x{n} v{v}" for c in cards for n in COUNTS for v in range(VARIANTS)]
        code = (card * len(COUNTS) + gpus) * VARIANTS + self.column(lambda x: x.variant)
        number = np.cumsum(self.is_host) - 1
        hosts = [f"host-{n:07d}" for n in range(int(self.is_host.sum()))]
        return Coded([*types, *hosts], np.where(self.is_host, len(types) + number, code))

    def _prices(self, price: NDArray[np.float64]) -> Coded[str]:
        """Prices to a hundredth of a cent; one in a thousand is missing."""
        rounded = np.rint(price * 1e4).astype(np.int64)
        rounded[self.rng.random(len(price)) < SHARE_WITHOUT_PRICE] = 0
        values, codes = np.unique(rounded, return_inverse=True)
        return Coded([f"{value / 1e4:.4f}" for value in values.tolist()], codes.reshape(-1))
