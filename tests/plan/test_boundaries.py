"""Where one more or one less decides: concurrency held, the worst miss, a share of a card."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.plan.build import SERVICE, offer

from rackrate.evidence import Kind
from rackrate.facts.book import FactBook
from rackrate.plan.answer import Reason
from rackrate.plan.planner import plan
from rackrate.plan.question import Question
from rackrate.plan.remarks import short_of_concurrency
from rackrate.plan.slices import slice_of
from rackrate.values import replace

Ask = Callable[..., Question]


@pytest.mark.parametrize(("more", "warned"), [(-1, False), (0, False), (1, True)])
def test_as_many_requests_as_are_held_at_once_are_no_shortage(ask: Ask, more: int, warned: bool) -> None:
    question = ask(SERVICE, [offer(1, "a100-sxm4-80", "1")])
    work, memory = question.workload, plan(question).plans[0].estimates[0].memory
    assert work.serving is not None
    assert memory.cache is not None
    tokens = work.serving.prompt_tokens + work.serving.output_tokens
    held = 2 * int(memory.cache.tokens.likely / tokens)
    asked = replace(work, serving=replace(work.serving, concurrency=held + more))
    assert (short_of_concurrency(asked, memory, 2, "a card") is not None) is warned


def test_of_two_missed_targets_the_one_missed_by_the_larger_part_is_named(ask: Ask) -> None:
    """The first token comes late by many times a short limit, the others by little of a longer one."""
    met = plan(ask(SERVICE, [offer(1, "a40", "1")])).plans[0].estimates[0].speed.serving
    assert met is not None
    first_ms, each_ms = met.first_token_s.likely * 1000, 1000 / met.per_user_tokens_per_s.likely
    for first_share, each_share, unit in ((0.9, 0.1, "s per output token"), (0.1, 0.9, "s to first token")):
        targets = {"first_token_ms": first_ms * first_share, "output_token_ms": each_ms * each_share}
        asked = {**SERVICE, "serving": {**SERVICE["serving"], **targets}}  # type: ignore[dict-item]
        group = plan(ask(asked, [offer(1, "a40", "1")])).rejected[0]
        assert group.reason is Reason.LATENCY
        assert group.nearest is not None
        assert group.nearest.observed.endswith(unit)


def test_a_share_of_a_card_has_that_share_of_all_that_is_shared(book: FactBook) -> None:
    card = book.accelerators["a100-sxm4-80"]
    half = slice_of(card, 0.5)
    assert half.memory_sold_gb == card.memory_sold_gb / 2
    for name in ("memory_total_bytes", "bandwidth_bytes_per_s", "peak_bf16_flop_per_s", "power_limit_w"):
        assert half.facts[name].value == card.facts[name].value / 2
        assert half.facts[name].kind is Kind.ASSUMED
    assert half.facts["pcie_gen"] == card.facts["pcie_gen"]
    assert slice_of(card, 1.0) is card
