"""A service without a target for it says when its users wait longer than people do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.plan.build import SERVICE, offer

from rackrate.evidence import Range
from rackrate.plan.answer import Plan
from rackrate.plan.planner import plan
from rackrate.plan.question import Question
from rackrate.plan.remarks import LONGEST_WAIT_S, READING_TOKENS_PER_S, slow_answer
from rackrate.problems import Code
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.values import replace
from rackrate.workload.workload import Workload

Ask = Callable[..., Question]


def answered(question: Question, wait_s: float, pace: float) -> tuple[Workload, SpeedEstimate]:
    """The workload, and its estimate with this first token and this pace."""
    speed = plan(question).plans[0].estimates[0].speed
    assert speed.serving is not None
    changed = {"first_token_s": Range.exact(wait_s), "per_user_tokens_per_s": Range.exact(pace)}
    return question.workload, replace(speed, serving=replace(speed.serving, **changed))


@pytest.mark.parametrize(
    ("wait_s", "pace", "flag"),
    [
        (LONGEST_WAIT_S, READING_TOKENS_PER_S, ""),
        (LONGEST_WAIT_S + 0.1, READING_TOKENS_PER_S, "--first-token-ms 10000 "),
        (LONGEST_WAIT_S, READING_TOKENS_PER_S - 0.1, "--output-token-ms 200 "),
        (293, 1, "--first-token-ms 10000 "),
    ],
)
def test_waits_beyond_those_of_people_are_told(ask: Ask, wait_s: float, pace: float, flag: str) -> None:
    work, speed = answered(ask(SERVICE, [offer(1, "a100-sxm4-80", "1")]), wait_s, pace)
    found = slow_answer(work, speed, "a card")
    assert (found is not None) is bool(flag)
    if found is not None:
        assert found.code is Code.SLOW_ANSWER
        assert flag in found.action


def test_who_gave_a_target_is_told_of_the_other_alone(ask: Ask) -> None:
    work, speed = answered(ask(SERVICE, [offer(1, "a100-sxm4-80", "1")]), 293, 1)
    assert work.serving is not None
    first = replace(work, serving=replace(work.serving, max_first_token_s=600.0))
    told = slow_answer(first, speed, "a card")
    assert told is not None
    assert "tokens/s per user" in told.observed
    both = replace(work, serving=replace(work.serving, max_first_token_s=600.0, max_s_per_output_token=9.0))
    assert slow_answer(both, speed, "a card") is None


def test_a_batch_of_requests_has_nobody_who_waits(ask: Ask) -> None:
    work, speed = answered(ask(SERVICE, [offer(1, "a100-sxm4-80", "1")]), 293, 1)
    assert work.serving is not None
    assert slow_answer(replace(work, serving=replace(work.serving, online=False)), speed, "a card") is None


def test_the_plan_says_it_and_the_target_that_it_names_leaves_the_plan_out(ask: Ask) -> None:
    serving = SERVICE["serving"] | {"context_tokens": 4096, "prompt_tokens": 3900, "output_tokens": 100}
    slow = SERVICE | {"serving": serving | {"concurrency": 64}}
    (first,) = plan(ask(slow, [offer(1, "a40", "1")])).plans
    assert Code.SLOW_ANSWER in codes(first)
    assert not plan(ask(slow | {"serving": slow["serving"] | {"first_token_ms": 10000}}, [offer(1, "a40", "1")])).plans
    (quick,) = plan(ask(SERVICE, [offer(1, "h100-sxm5-80", "1")])).plans
    assert Code.SLOW_ANSWER not in codes(quick)


def codes(found: Plan) -> set[Code]:
    """The codes of the warnings of a plan."""
    return {finding.code for finding in found.warnings}
