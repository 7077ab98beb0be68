"""Questions to plan for: bundled facts, offers made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.plan.build import AT

from rackrate.facts.book import FactBook
from rackrate.facts.bundled import load
from rackrate.offers.offer import Offer
from rackrate.offers.rows import table_of_offers
from rackrate.plan.answer import Rank
from rackrate.plan.question import Question
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_table


@pytest.fixture(scope="session")
def book() -> FactBook:
    return load()


@pytest.fixture(scope="session")
def ask(book: FactBook) -> Callable[..., Question]:
    """A question about a workload (a table, keys by path on top) over offers."""

    def build(
        table: dict[str, object], offers: Sequence[Offer], *, rank: Rank = Rank.COST, limit: int = 10
    ) -> Question:
        parsed = parse(request_from_table(table), book)
        assert isinstance(parsed, Parsed), parsed
        return Question(
            workload=parsed.workload,
            engine=book.engine(parsed.workload.engine_id),
            book=book,
            offers=table_of_offers(offers, book.rules_of, at=AT),
            at=AT,
            currency="USD",
            rank=rank,
            request=parsed.request,
            limit=limit,
        )

    return build
