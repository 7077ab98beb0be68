"""Own prices: what they need, what they replace, what they default to, and what a plan says of them."""

from datetime import date
from decimal import Decimal

import pytest
from tests.app.own import NEGOTIATED, OFFERS, RATES, offer, one

from rackrate import api
from rackrate.app.context import context
from rackrate.offers import catalog

AT = date(2026, 11, 30)
JOB = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}
P4D = "aws/p4d.24xlarge/us-east-1/on_demand/2026-07-20"
BUNDLED = context(AT)
BUNDLED_FILE = catalog.DATA / "offers-clouds.csv"


def plans(**limits):
    return api.plan(JOB, {f"limits.{key}": value for key, value in limits.items()}, limit=50, at=AT).plans


def p4d():
    found = plans(providers=["aws"], gpus=["a100-sxm4-40"])
    return [plan for plan in found if plan.offer == "p4d.24xlarge" and plan.market == "on_demand"]


def ours(here):
    """The user's offers as records, by name."""
    table = here.catalog.table
    return {standing.line.cells[1]: table.offer(standing.row) for standing in here.catalog.own}


# ---------------------------------------------------------------- replacing a bundled price


def test_a_negotiated_rate_wins_though_it_is_older_and_shows(own):
    assert one(p4d()).price_per_hour == "21.957642"
    own({"offers.csv": NEGOTIATED})
    plan = one(p4d())
    assert (plan.price_per_hour, plan.price_own, plan.price_source) == ("11.5", True, "own")
    assert (plan.region, plan.market) == ("us-east-1", "on_demand")
    seen = one(w for w in plan.warnings if w.code == "offers_disagree")
    assert seen.severity == "info"
    assert "21.957642 USD/h from aws, 2026-07-20" in seen.observed
    assert seen.action == "your own price is used"


def test_the_replaced_price_stays_to_be_seen(own):
    here = own({"offers.csv": NEGOTIATED})
    table = here.catalog.table
    assert len(table) == len(BUNDLED.catalog.table) + 1
    replaced = one(one(here.catalog.own).replaces for _ in "1")
    assert [table.offer(row).id for row in replaced] == [P4D]
    assert all(table.superseded[row] for row in replaced)
    told = api.show_facts("aws", "price of p4d.24xlarge", at=AT).facts
    assert [(said.value, said.own, said.used, said.step) for said in told] == [
        ("11.5", True, True, "own"),
        ("21.957642", False, False, "own"),
    ]


@pytest.mark.parametrize(
    ("seen", "flags", "wins"),
    [
        ("2026-07-19", "", False),
        ("2026-07-20", "", True),
        ("2026-08-01", "", True),
        ("2020-01-01", "negotiated", True),
    ],
)
def test_a_price_replaces_bundled_ones_that_are_not_newer_or_all_if_negotiated(own, seen, flags, wins):
    row = f"aws,p4d.24xlarge,A100 40GB SXM4,8,11.5,USD,hour,{seen},{flags}"
    here = own({"offers.csv": f"{OFFERS},flags\n{row}\n"})
    assert one(p4d()).price_own is wins
    assert here.catalog.table.superseded[one(here.catalog.own).row] == (not wins)


def test_the_older_price_is_named_by_the_check(own):
    own(
        {"offers.csv": offer(provider="aws", name="p4d.24xlarge", card="A100 40GB", gpus="8", observed_on="2026-07-01")}
    )
    found = api.check_facts(at=AT)
    assert found.good
    note = one(found.notes)
    assert note.subject == "offers.csv:2 observed_on"
    assert P4D in note.observed
    assert "negotiated" in note.action
    assert one(found.prices).standing == "replaced"


@pytest.mark.parametrize(
    "other",
    [
        {"gpus": "4"},
        {"name": "p4d.48xlarge"},
        {"provider": "gcp"},
        {"card": "H100 SXM5 80GB"},
        {"term": "week"},
        {"market": "spot"},
        {"region": "eu-west-1"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_thing_is_not_replaced(own, other):
    cells = {"provider": "aws", "name": "p4d.24xlarge", "card": "A100 40GB SXM4", "gpus": "8"} | other
    here = own({"offers.csv": offer(**cells)})
    assert here.findings == ()
    assert one(here.catalog.own).replaces == ()
    assert any(plan.offer_id == P4D for plan in p4d())


def test_a_rate_without_a_region_holds_wherever_the_product_is_listed(own):
    table = BUNDLED.catalog.table
    name = "g6.xlarge"
    listed = {table.record(i) for i in range(len(table)) if table.record(i).name == name}
    wanted = {o.region for o in listed if o.market == "on_demand" and o.provider == "aws"}
    assert wanted
    here = own({"offers.csv": offer(provider="AWS", name=name, card="L4", price="0.5", observed_on="2026-11-29")})
    mine = ours(here)[name]
    assert mine.provider == "aws"
    assert set(mine.region.split("|")) == wanted
    assert here.catalog.table.in_regions(sorted(wanted))[one(here.catalog.own).row]


def test_of_two_own_prices_of_one_thing_one_counts(own):
    rows = [
        "aws,p4d.24xlarge,A100 40GB SXM4,8,11.5,USD,hour,2026-01-02,negotiated",
        "aws,p4d.24xlarge,A100 40GB SXM4,8,12.5,USD,hour,2026-11-02,",
        "aws,p4d.24xlarge,A100 40GB SXM4,8,13.5,USD,hour,2026-02-02,negotiated",
    ]
    own({"offers.csv": "\n".join([f"{OFFERS},flags", *rows])})
    assert one(p4d()).price_per_hour == "13.5"


def test_prices_can_be_spread_over_files_and_folders(own):
    here = own({"offers-a.csv": offer(name="a"), "offers-b.csv": offer(name="b"), "offers.csv": offer(name="c")})
    assert set(ours(here)) == {"a", "b", "c"}


# ---------------------------------------------------------------- defaults


@pytest.mark.parametrize(
    ("term", "hours", "prepaid", "market"),
    [
        ("hour", 1, False, "on_demand"),
        ("day", 24, True, "daily_package"),
        ("week", 168, True, "weekly_package"),
        ("month", 720, True, "monthly_package"),
        ("year", 8760, True, "reserved_1y"),
        ("3year", 26280, True, "reserved_3y"),
    ],
)
def test_the_rest_follows_from_the_term_and_is_listed(own, term, hours, prepaid, market):
    mine = ours(own({"offers.csv": offer(term=term)}))["node 1"]
    assert (mine.term.unit, mine.term.hours, mine.term.prepaid, mine.market) == (term, hours, prepaid, market)
    filled = {f.column: f.value for f in one(api.check_facts(at=AT).prices).filled}
    assert filled == {
        "market": market,
        "hours_in_term": str(hours),
        "prepaid": str(prepaid).lower(),
        "observed_how": "page_read",
    }


def test_what_is_said_is_not_defaulted(own):
    said = {"hours_in_term": "730", "prepaid": "false", "market": "club", "region": "here", "observed_how": "not_after"}
    here = own({"offers.csv": offer(term="month", **said)})
    mine = ours(here)["node 1"]
    assert (mine.term.hours, mine.term.prepaid, mine.market, mine.region) == (730, False, "club", "here")
    assert one(here.catalog.own).line.filled == ()


def test_a_spot_price_can_be_interrupted(own):
    assert ours(own({"offers.csv": offer(market="spot")}))["node 1"].interruptible


def test_the_source_is_own_and_what_its_author_says(own):
    here = own({"offers.csv": offer(name="a", source="our agreement"), "offers2.csv": offer(name="b")})
    assert {name: o.source for name, o in ours(here).items()} == {"a": "own: our agreement", "b": "own"}


def test_the_full_format_is_read_too(own):
    bundled = (BUNDLED_FILE).read_text("utf-8").splitlines()
    full = next(line for line in bundled if line.startswith("verda,1H200.141S.44V,") and ",on_demand," in line)
    here = own({"offers-full.csv": f"{bundled[0]}\n{full}\n"})
    assert here.findings == ()
    table = here.catalog.table
    mine = table.record(one(here.catalog.own).row)
    its = next(
        o for o in map(table.record, range(len(table))) if o.name == mine.name and not o.own and o.market == "on_demand"
    )
    same = ("provider", "product", "cards", "gpus", "region", "market", "price", "term", "vcpus", "host_memory_bytes")
    assert all(getattr(mine, key) == getattr(its, key) for key in same)


def test_a_weekly_package_in_yuan_is_billed_by_whole_weeks_and_shown_in_dollars(own):
    own(
        {
            "offers.csv": offer(
                provider="AutoDL", name="week package", card="RTX 4090", price="240", currency="CNY", term="week"
            )
        }
    )
    plan = one(plan for plan in plans(providers=["AutoDL"], gpus=["rtx4090"]) if plan.price_own)
    line = plan.cost.lines[0]
    assert (line.name, line.quantity, line.unit, line.amount, line.currency) == ("term", "1", "week", "240", "CNY")
    assert plan.market == "weekly_package"
    assert plan.billed_hours == 168
    rates = BUNDLED.book.rates
    assert Decimal(plan.cost.likely) == pytest.approx(240 * rates.factor("CNY", "USD"), rel=Decimal("0.001"))


def test_own_regions_say_where_a_machine_is(own):
    own(
        {
            "offers.csv": offer(region="cellar"),
            "regions.csv": "provider,region,country,groups\nmybox,cellar,DE,europe|eu\n",
        }
    )
    assert {plan.provider for plan in plans(regions=["de"], providers=["mybox"])} == {"mybox"}
    assert {plan.provider for plan in plans(regions=["eu"], providers=["mybox"])} == {"mybox"}


def test_an_own_region_of_any_provider(own):
    own({"offers.csv": offer(region="moon-1"), "regions.csv": "region,country,groups\nmoon-1,LU,europe\n"})
    assert one(plans(regions=["lu"], providers=["mybox"])).region == "moon-1"


def test_a_price_seen_after_the_day_of_the_question_is_not_known_yet(own):
    here = own({"offers.csv": offer(observed_on="2026-12-24")})
    assert here.catalog.own == ()
    assert len(context(date(2026, 12, 24)).catalog.own) == 1


def test_bundled_offers_keep_their_ids(own):
    before = [BUNDLED.catalog.table.record(i).id for i in range(len(BUNDLED.catalog.table))]
    here = own({"offers.csv": NEGOTIATED, "exchange_rates.csv": f"{RATES}\nUSD,TWD,32,2026-11-27\n"})
    after = [here.catalog.table.record(i).id for i in range(len(here.catalog.table))]
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)


def test_the_same_folder_gives_the_same_answer(own):
    files = {"offers.csv": NEGOTIATED, "offers-2.csv": offer(), "offers-3.csv": offer(card="nonsense")}
    first = api.to_json(own(files) and api.plan(JOB, at=AT))
    assert api.to_json(own(files) and api.plan(JOB, at=AT)) == first
