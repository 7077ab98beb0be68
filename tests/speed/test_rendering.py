"""Rendering: scores are compared within one test, never across tests."""

import pytest

from rackrate.evidence import Unknown
from rackrate.facts.bundled import render_scores
from rackrate.facts.render import render_score
from rackrate.speed.rendering import compared, scores_of
from rackrate.values import replace

SCORES = render_scores()


def test_cards_compare_in_each_test_that_both_did():
    found = compared("l40s", "rtx4090", SCORES)
    assert {each.mine.backend for each in found} == {"OptiX", "CUDA"}
    for each in found:
        assert each.mine.test == each.other.test
        assert each.times == pytest.approx(each.mine.value / each.other.value)
        assert 0.7 < each.times < 1


def test_where_less_is_better_the_ratio_turns_round():
    (first, *_) = (each for each in compared("rtx5090", "rtx4090", SCORES) if not each.mine.higher_is_better)
    assert first.times == pytest.approx(first.other.value / first.mine.value)
    assert first.times > 1


def test_scores_of_other_versions_backends_and_sources_are_not_compared():
    mine = next(score for score in SCORES if score.accelerator == "l40s")
    for change in ({"version": "5"}, {"backend": "HIP"}, {"benchmark": "x"}, {"unit": "s"}, {"source": "elsewhere"}):
        other = replace(mine, accelerator="t4", **change)
        assert isinstance(compared("l40s", "t4", [mine, other]), Unknown)
    assert compared("l40s", "t4", [mine, replace(mine, accelerator="t4")])[0].times == 1


def test_no_data_is_said():
    assert scores_of("mi300x-192", SCORES) == ()
    found = compared("mi300x-192", "l40s", SCORES)
    assert isinstance(found, Unknown)
    assert found.reason.startswith("no data")


def test_the_score_of_most_runs_comes_first():
    runs = [score.results or 0 for score in scores_of("rtx4090", SCORES)]
    assert runs == sorted(runs, reverse=True)


def test_a_bad_row_is_refused():
    row = dict.fromkeys(("accelerator", "benchmark", "version", "backend", "unit", "source", "date", "note"), "")
    with pytest.raises(ValueError, match="could not convert"):
        render_score({**row, "value": "many", "higher_is_better": "true", "results": ""})
