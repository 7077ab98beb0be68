"""The question that a plan answers: the workload and everything it is judged against, as one value."""

from __future__ import annotations

from datetime import date

from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.offers.table import OfferTable
from rackrate.plan.answer import Rank
from rackrate.values import Value
from rackrate.workload.request import Request
from rackrate.workload.workload import Workload


class Question(Value, frozen=True, kw_only=True):
    """A workload, the engine it runs on, the facts and offers known at ``at``, and how to rank.

    Costs are compared in ``currency`` at the book's dated rates; ``limit`` is
    the number of plans wanted. ``request`` is what was said, from which the
    workload of a change is decided anew; without it no change is named.
    """

    workload: Workload
    engine: Engine
    book: FactBook
    offers: OfferTable
    at: date
    currency: str
    rank: Rank = Rank.COST
    limit: int = 10
    request: Request | None = None
