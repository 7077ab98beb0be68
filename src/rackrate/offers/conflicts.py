"""Conflicts: which observation of one price is used, and what the others say.

Observations of the same thing (product, cards, count, region, market, term) by
the same seller are one price series. Plans use the newest. The rule of
precedence, first difference decides:

1. a price that is a positive number goes before one that is not;
2. an observation whose date is sure (read or generated on that day, or known
   to be no older) goes before one whose date is only an upper limit;
3. the later date;
4. the dearer price;
5. the later row of the file.

The others stay in the table, marked as superseded. The same thing from two
sellers (a cloud and its reseller) is two series: both can be bought. For a
user's own prices see ``own_standing``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.offer import Offer
from rackrate.problems import Code, Finding, Severity

NOT_AFTER = "not_after"
"""How an offer was observed whose date is only the last on which it can have been seen."""

DATE_IS_SURE = frozenset({"page_read", "generated", "not_before"})
"""Ways of observing that prove that a price is not older than its date."""


def superseded(
    series: NDArray[np.int32],
    priced: NDArray[np.bool_],
    dated: NDArray[np.bool_],
    day: NDArray[np.int32],
    price: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which rows give way to another row of their series, by the rule of precedence above.

    All arrays have one entry per row: series code, whether the price is a
    positive number, whether the date is sure, ordinal day, price per hour.
    """
    order = np.lexsort((price, day, dated, priced, series))
    ordered = series[order]
    gives_way = np.zeros(len(series), dtype=np.bool_)
    gives_way[order[:-1]] = ordered[:-1] == ordered[1:]
    return gives_way


def disagreements(offers: Sequence[Offer]) -> tuple[Finding, ...]:
    """What to say about ``offers``, all of the same thing, when their prices per hour differ."""
    if all(offer.price_per_hour == offers[0].price_per_hour for offer in offers):
        return ()
    resold = len({offer.provider for offer in offers}) > 1
    used = next((offer for offer in offers if not offer.superseded), offers[0])
    return (
        Finding(
            code=Code.OFFERS_DISAGREE,
            subject=used.id,
            severity=Severity.INFO if resold or used.own else Severity.WARNING,
            observed="; ".join(_seen(offer) for offer in offers),
            expected="one price",
            action=_next_step(used, resold=resold),
            source="; ".join(dict.fromkeys(offer.source for offer in offers)),
        ),
    )


def _next_step(used: Offer, *, resold: bool) -> str:
    if used.own:
        return "your own price is used"
    return "choose the seller" if resold else "the newest is used; look at the price before renting"


def _seen(offer: Offer) -> str:
    price = offer.price_per_hour
    hourly = f"{price.rounded(6).amount.normalize():f} {price.currency}/h"
    own = "own, " if offer.own else ""
    return f"{own}{hourly} from {offer.provider}, {offer.observed_on} ({offer.observed_how})"
