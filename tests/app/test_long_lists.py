"""Planning over a file of columns is planning over the price lists that it was written from."""

from datetime import date
from random import Random

import pytest

from rackrate.app import context, long_lists, planning
from rackrate.offers import catalog
from rackrate.problems import Refused

AT = date(2026, 11, 30)
RATES = "base,currency,per_base,on\nUSD,TWD,32,2026-11-27\n"
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


def test_own_facts_are_facts_that_a_file_belongs_to(tmp_path, monkeypatch):
    path = tmp_path / "offers.columns"
    long_lists.write(catalog.DATA, path, at=AT)
    own = tmp_path / "own"
    own.mkdir()
    (own / "exchange_rates.csv").write_text(RATES, "utf-8")
    monkeypatch.setenv("RACKRATE_FACTS", str(own))
    with pytest.raises(Refused):
        long_lists.context_over(path, AT)
    long_lists.write(catalog.DATA, path, at=AT)
    assert long_lists.context_over(path, AT).catalog.table.count > 0


def test_what_could_not_be_read_is_told_and_the_rest_is_there(tmp_path):
    for name in ("regions.csv", "offers-clouds.csv", "offers-china.csv"):
        (tmp_path / name).write_bytes((catalog.DATA / name).read_bytes())
    clouds = tmp_path / "offers-clouds.csv"
    header, _, second, *rest = clouds.read_text("utf-8").splitlines()
    cells = second.split(",")
    broken = [header, "half,a,line", ",".join([*cells[:6], "several", *cells[7:]]), *rest]
    clouds.write_text("\n".join(broken) + "\n", "utf-8")
    (tmp_path / "offers-china.csv").write_text("another,header\n", "utf-8")
    found = long_lists.write(tmp_path, tmp_path / "offers.columns", at=AT)
    assert sorted(f.subject for f in found) == ["gpus, 1 lines", "offers-china.csv:1", "offers-clouds.csv:2"]
    table = long_lists.context_over(tmp_path / "offers.columns", AT).catalog.table
    assert 0 < table.count <= len(rest)


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file_is_refused(tmp_path, packed, seed):
    """One bit anywhere, an end cut off, bytes more: nothing is answered from it."""
    chance, damaged, path = Random(seed), bytearray(packed), tmp_path / "damaged.columns"  # noqa: S311
    if seed % 3 == 0:
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    elif seed % 3 == 1:
        del damaged[chance.randrange(len(damaged)) :]
    else:
        damaged += bytes(chance.randrange(1, 9))
    path.write_bytes(damaged)
    with pytest.raises(Refused) as refused:
        long_lists.context_over(path, AT)
    assert [f.code for f in refused.value.findings] == ["file_unreadable"]
    assert "rackrate offers pack" in refused.value.findings[0].action


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A file of columns."""
    path = tmp_path_factory.mktemp("packed") / "offers.columns"
    long_lists.write(catalog.DATA, path, at=AT)
    assert long_lists.context_over(path, AT).catalog.table.count > 0
    return path.read_bytes()


@pytest.mark.parametrize(
    ("path", "seen"), [("/dev/zero", "a pipe or a device"), ("", "an empty text"), (" ", "an empty")]
)
def test_what_never_ends_or_has_no_name_is_refused(path, seen):
    with pytest.raises(Refused) as refused:
        long_lists.context_over(path, AT)
    assert seen in refused.value.findings[0].observed
