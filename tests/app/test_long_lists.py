"""Planning over a file of columns is planning over the price lists that it was written from."""

from datetime import date

import pytest

from rackrate.app import context, long_lists, planning
from rackrate.offers import catalog
from rackrate.problems import Refused

AT = date(2026, 11, 30)
JOB = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}


@pytest.mark.parametrize("flags", [{}, {"limits.budget": "9 USD"}, {"limits.regions": ["us"], "limits.max_gpus": 2}])
def test_the_answer_is_that_of_the_lists(tmp_path, flags):
    path = tmp_path / "offers.columns"
    assert long_lists.write(catalog.DATA, path, at=AT) == ()
    found = planning.plan_over(long_lists.context_over(path, AT), JOB, flags)
    expected = planning.plan_over(context.context(AT), JOB, flags)
    assert [p.cost for p in found.plans] == [p.cost for p in expected.plans]
    assert [p.cost for p in found.frontier] == [p.cost for p in expected.frontier]
    assert (found.considered, found.more_plans) == (expected.considered, expected.more_plans)
    assert [(g.reason, g.count) for g in found.rejected] == [(g.reason, g.count) for g in expected.rejected]


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(Refused):
        long_lists.context_over(tmp_path / "nothing", AT)
