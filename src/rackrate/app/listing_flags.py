"""The keys and flags of a list of offers: limits of a workload, and keys of its own."""

from __future__ import annotations

from rackrate.app.flags import Flag, flag_of
from rackrate.plan.listing_words import GROUP_KEYS, SORT_KEYS
from rackrate.workload.key import Key
from rackrate.workload.keys import KEYS

LIMITS = ("gpus", "vendors", "require", "gpu_counts", "max_gpus")
SELLERS = ("providers", "exclude_providers", "regions", "markets", "access")
"""The limits of a workload that a list of offers takes too."""

OWN = (
    Key(
        path="min_gpus",
        kind="whole",
        flag="--min-gpus",
        unit="cards",
        high=1e6,
        help="Fewest cards in one machine.",
        example="8",
    ),
    Key(
        path="min_memory",
        kind="number",
        flag="--min-memory",
        unit="GB as sold",
        low=0,
        high=1e5,
        help="Least memory of one card, in GB as sold.",
        example="40",
    ),
    Key(
        path="max_price",
        kind="money",
        flag="--max-price",
        help="Most for the whole offer and an hour: an amount, in the currency shown unless it names one.",
        example="12 USD",
    ),
    Key(
        path="max_price_per_gpu",
        kind="money",
        flag="--max-price-per-gpu",
        help="Most for one card and an hour (of a slice: for the whole card).",
        example="2 USD",
    ),
    Key(
        path="priced_in",
        kind="list",
        flag="--priced-in",
        names="currency",
        help="Currencies that the seller may price in.",
        example="USD, EUR",
    ),
    Key(
        path="seen_since",
        kind="text",
        flag="--seen-since",
        help="Leave prices out that were seen before this day.",
        example="2026-11-01",
    ),
    Key(
        path="history",
        kind="switch",
        flag="--history",
        help="Show prices too that a newer one replaced.",
        default=False,
    ),
    Key(
        path="currency",
        kind="text",
        flag="--currency",
        names="currency",
        help="Currency to show and compare prices in.",
        example="EUR",
    ),
    Key(
        path="sort",
        kind="list",
        flag="--sort",
        names="sort_key",
        help=f"What to sort by, in order; -KEY from the largest. Some of: {', '.join(SORT_KEYS)}.",
        example="-memory, per_gpu",
    ),
    Key(
        path="group_by",
        kind="choice",
        flag="--group-by",
        choices=GROUP_KEYS,
        help="Show the first of each card, provider, market or region, with the range of its prices.",
        example="card",
    ),
)
OWN_KEYS = {key.path: key for key in OWN}


def flags() -> tuple[Flag, ...]:
    """All flags, in the order of --help."""
    limits = tuple(KEYS[f"limits.{name}"] for name in (*LIMITS, *SELLERS))
    return tuple(flag_of(key) for key in (*limits, *OWN))
