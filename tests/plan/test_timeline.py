"""Timelines: what a machine does on the meter, start by start."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.build import JOB, SERVICE, offer

from rackrate.offers.offer import Term
from rackrate.plan.planner import plan
from rackrate.plan.pricing import likely_case
from rackrate.plan.question import Question
from rackrate.plan.timeline import Startup, starts_by_kind, usage_of
from rackrate.workload.decide_use import download_bytes

Ask = Callable[..., Question]
HOUR, DAY = 3600, 86_400
STARTUP = Startup(2.0, 0.5)


def used(ask: Ask, table: dict[str, Any], work_hours: float = 6.0, machines: int = 1, **use: object) -> Any:
    return usage_of(ask({**table, "use": use}, []).workload, work_hours, STARTUP, machines)


def hours(ask: Ask, table: dict[str, Any], **use: object) -> list[float]:
    return [float(seconds) / HOUR for seconds in used(ask, table, **use).run_seconds]


def test_own_data_come_in_at_the_first_start(ask: Ask) -> None:
    assert hours(ask, JOB, starts=3) == [4.0, 2.5, 2.5]
    assert hours(ask, SERVICE, hours_per_day=8, horizon_days=3) == [10.0, 8.5, 8.5]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (2.5, [10.0, 8.5, 4.5]),
        (3.5, [10.0, 8.5, 8.5, 4.5]),
        (2.25, [10.0, 8.5, 2.5]),
        (2, [10.0, 8.5]),
        (1.5, [10.0, 4.5]),
        (0.5, [6.0]),
        (0.25, [4.0]),
    ],
)
def test_a_service_that_rests_runs_on_whole_days_and_on_its_part_of_the_last(
    ask: Ask, days: float, expected: list[float]
) -> None:
    assert hours(ask, SERVICE, hours_per_day=8, horizon_days=days) == expected


def test_a_day_has_no_more_hours_than_there_are(ask: Ask) -> None:
    assert hours(ask, SERVICE, hours_per_day=23.5, horizon_days=2.5) == [24.0, 24.0, 12.0]


@pytest.mark.parametrize("days", [0.4, 1, 2.5, 30])
def test_a_service_that_never_rests_starts_once_for_its_horizon(ask: Ask, days: float) -> None:
    one = used(ask, SERVICE, horizon_days=days)
    assert (one.run_seconds, one.stopped_seconds) == ((Decimal(round(days * DAY)),), 0)


@given(days=st.floats(0.01, 40), each=st.floats(0.01, 24))
def test_running_and_stopped_make_up_the_horizon(ask: Ask, days: float, each: float) -> None:
    one = used(ask, SERVICE, hours_per_day=each, horizon_days=days)
    whole = one.running_seconds + one.stopped_seconds
    assert 0 <= whole - round(days * DAY) <= len(one.run_seconds)  # seconds are rounded up at each start


def test_a_disk_is_kept_after_the_last_run_of_a_job_and_of_a_service(ask: Ask) -> None:
    job = used(ask, JOB, keep_disk_days=7)
    assert (job.stopped_seconds, job.kept_seconds, job.paused_seconds) == (7 * DAY, 7 * DAY, 0)
    service = used(ask, SERVICE, hours_per_day=8, horizon_days=2, keep_disk_days=7)
    assert service.paused_seconds == 2 * DAY - int(18.5 * HOUR)
    assert service.kept_seconds == 7 * DAY


def test_traffic_is_of_all_machines_the_model_at_every_start_of_each(ask: Ask) -> None:
    one = used(ask, JOB, starts=3, data_in="10 GB", data_out="5 GB", machines=4)
    work = ask(JOB, []).workload
    model = download_bytes(work.model, work.weights, work.task)
    assert one.data_in_bytes == round(10e9 + 12 * model)
    assert one.data_out_bytes == 5 * 10**9


@given(
    st.one_of(
        st.tuples(st.just(JOB), st.fixed_dictionaries({"starts": st.integers(1, 6)})),
        st.tuples(
            st.just(SERVICE),
            st.fixed_dictionaries({"hours_per_day": st.floats(0.5, 24), "horizon_days": st.floats(0.05, 9)}),
        ),
    )
)
def test_starts_of_one_kind_follow_each_other(ask: Ask, case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """The columns of cost know a timeline by its kinds of start alone."""
    table, use = case
    runs, counts = used(ask, table, **use).run_seconds, starts_by_kind(ask({**table, "use": use}, []).workload)
    assert sum(counts) == len(runs)
    spread = [kind for kind, count in enumerate(counts) for _ in range(count)]
    for _, same in groupby(zip(spread, runs, strict=True), key=lambda pair: pair[0]):
        assert len({seconds for _, seconds in same}) == 1


# ---------------------------------------------------------------- in plans


def test_own_data_take_time_once_however_many_starts(ask: Ask) -> None:
    def finish(starts: int, data: str) -> float:
        use = {"starts": starts, "data_in": data}
        return plan(ask({**JOB, "use": use}, [offer(1, "a40", "1")])).plans[0].hours.likely

    one, five = (finish(starts, "500 GB") - finish(starts, "0 GB") for starts in (1, 5))
    assert one > 0.1
    assert five == pytest.approx(one)


def test_the_bill_of_a_job_has_the_time_of_its_plan(ask: Ask) -> None:
    question = ask({**JOB, "use": {"starts": 4, "data_in": "300 GB"}}, [offer(1, "a40", "1", provider="aws")])
    best = plan(question).plans[0]
    case = likely_case(question.workload, best.estimates)
    assert float(case.usage.running_seconds) == pytest.approx(best.hours.likely * HOUR, abs=4)


def test_machines_of_a_job_have_time_for_all_their_starts(ask: Ask) -> None:
    """Each session starts up: a deadline leaves that much less for the work of each machine."""
    batch = {"model": "meta-llama/Llama-2-7b-hf", "serving": {"requests": "300k"}}
    limits = {"deadline": "5 h"}
    one, six = (
        plan(ask({**batch, "limits": limits, "use": {"starts": starts}}, [offer(1, "a40", "1")])).plans[0]
        for starts in (1, 6)
    )
    assert six.machines > one.machines
    assert six.hours.likely <= 5


def test_a_kept_disk_buys_no_further_day(ask: Ask) -> None:
    day = offer(1, "a40", "20", term=Term(unit="day", hours=Decimal(24), prepaid=True))
    kept = plan(ask({**JOB, "use": {"keep_disk_days": 9}}, [day])).plans[0]
    assert [line.quantity for line in kept.cost.lines if line.name == "term"] == [1]


def test_a_service_that_rests_is_in_use_for_what_its_bill_has(ask: Ask) -> None:
    """Each day starts up: hours and cost are as uncertain as that is."""
    question = ask(
        {**SERVICE, "use": {"hours_per_day": 8, "horizon_days": 10.5}}, [offer(1, "a40", "1", provider="aws")]
    )
    best = plan(question).plans[0]
    seconds = float(likely_case(question.workload, best.estimates).usage.running_seconds)
    assert seconds == pytest.approx(best.hours.likely * HOUR, abs=11)
    assert best.hours.low < best.hours.likely < best.hours.high
    spans = [float(money.amount) for money in (best.cost.low, best.cost.likely, best.cost.high)]
    assert spans[0] < spans[1] < spans[2]
    (compute,) = (float(line.amount.amount) for line in best.cost.lines if line.name == "compute")
    assert spans[2] - spans[1] == pytest.approx(best.hours.high - best.hours.likely, rel=0.05)
    assert compute == pytest.approx(best.hours.likely, rel=1e-3)
