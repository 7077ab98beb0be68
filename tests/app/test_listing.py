"""``offers`` and ``--need``: what is shown of an offer, what a filter leaves out, other price lists, bad files."""

import csv
import io
import random
import shutil
from datetime import date
from decimal import Decimal

import pytest
from tests.cli.ask import DAY, NO_OFFERS, OFFERS, answer, name_of, run
from tests.cli.test_tables import csv_rows, markdown_rows

from rackrate import api
from rackrate.app import long_lists
from rackrate.offers import catalog

AT = date.fromisoformat(DAY)
JOB = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}


def test_offers_is_what_the_command_line_prints():
    printed = answer("offers", "--gpu", "a40", "--max-price", "1", "--sort", "-seen", "--json").out
    asked = {"gpus": ["a40"], "max_price": 1, "sort": ["-seen"]}
    assert api.to_json(api.offers(asked, at=AT)) + "\n" == printed


@pytest.mark.parametrize("args", [*OFFERS, *NO_OFFERS], ids=name_of)
def test_offers_are_the_same_in_all_forms(args):
    document, rows = answer(*args, "--json").document, csv_rows(args)
    assert [row["offer_id"] for row in rows] == [offer["offer_id"] for offer in document["offers"]]
    assert markdown_rows(args) == rows
    for row, offer in zip(rows, document["offers"], strict=True):
        for key in ("accelerator", "provider", "region", "market", "price_per_hour", "price_currency", "price_source"):
            assert row[key] == offer[key]
        assert row["shown_per_gb_hour_as_sold"] == (offer["shown_per_gb_hour_as_sold"] or "")
        assert row["shown_currency"] == document["currency"]
    left_out = sum(group["count"] for group in document["left_out"])
    assert document["found"] + left_out == document["considered"]
    shown = len(document["groups"]) if document["group_by"] else len(document["offers"])
    assert document["group_by"] or shown + document["more"] == document["found"]


@pytest.mark.parametrize("args", OFFERS, ids=name_of)
def test_prices_of_a_card_and_a_gb_are_parts_of_the_whole(args):
    for offer in answer(*args, "--json").document["offers"]:
        whole, each = Decimal(offer["shown_per_hour"]), Decimal(offer["shown_per_gpu_hour"])
        assert float(each) == pytest.approx(float(whole) / (offer["gpus"] * offer["share"]), abs=1e-6)
        if offer["memory_sold_gb"]:
            per_gb = float(offer["shown_per_gb_hour_as_sold"])
            assert per_gb == pytest.approx(float(each) / offer["memory_sold_gb"], abs=1e-6)


def test_billing_is_told_as_far_as_it_is_known():
    found = {offer.offer_id: offer for offer in api.offers({"history": True}, limit=1000, at=AT).offers}
    prepaid = [offer for offer in found.values() if offer.prepaid]
    assert prepaid
    assert all(offer.billing.step_s == pytest.approx(offer.term_hours * 3600) for offer in prepaid)
    assert {offer.billing.stop for offer in prepaid} <= {"term_is_paid", "loses_term"}
    aws = next(offer for offer in found.values() if offer.provider == "aws" and not offer.prepaid)
    assert (aws.billing.step_s, aws.billing.minimum_s, aws.billing.stop) == (1, 60, "ends_billing")
    oci = next(offer for offer in found.values() if offer.provider == "oci" and not offer.prepaid)
    assert oci.billing.step_s is None
    assert oci.stock == "unknown"


FILTERS = {
    "limits.gpus": "--gpu",
    "limits.providers": "--provider",
    "max_price": "--max-price",
    "limits.access": "--need",
}


@pytest.mark.parametrize("args", NO_OFFERS, ids=name_of)
def test_an_empty_list_names_each_filter_to_drop_and_dropping_it_helps(args):
    drops, text = answer(*args, "--json").document["drops"], " ".join(answer(*args).out.split())
    assert drops
    for drop in drops:
        flag = FILTERS[drop["knob"]]
        at = args.index(flag)
        without = answer(*args[:at], *args[at + 2 :], "--json").document
        assert without["found"] == drop["found"] > 0
        assert without["offers"][0]["offer_id"] == drop["nearest"]["offer_id"]
        assert f"Drop {flag} {drop['asked']} {drop['found']} come in" in text


def test_an_answer_that_is_not_empty_has_nothing_to_drop():
    assert answer(*OFFERS[0], "--json").document["drops"] == []


def test_unknown_is_no_pass_and_says_so():
    document = answer(*NO_OFFERS[2], "--json").document
    groups = {group["reason"]: group for group in document["left_out"]}
    assert groups["access_unknown"]["count"] > 600
    assert groups["access_unknown"]["change"]["knob"] == "limits.access"
    assert "what renting asks for is not known" in " ".join(answer(*NO_OFFERS[2]).out.split())


def test_a_plan_keeps_to_what_renting_needs():
    whole = api.plan(JOB, at=AT, limit=1000)
    found = api.plan(JOB, {"limits.access": ["payment=card"]}, at=AT, limit=1000)
    takers = {offer.provider for offer in api.offers({"access": ["payment=card"]}, at=AT, limit=1000).offers}
    assert {plan.provider for plan in found.plans} <= takers
    assert len(found.plans) == sum(plan.provider in takers for plan in whole.plans) > 0
    group = next(group for group in found.rejected if group.reason == "access_unknown")
    assert group.nearest.observed == "no source seen on payment=card"
    assert group.nearest.change.knob == "limits.access"


def test_a_need_that_is_not_met_names_the_fact():
    found = api.plan(JOB, {"limits.access": ["no_quota"], "limits.providers": ["aws", "gcp"]}, at=AT)
    group = next(group for group in found.rejected if group.reason == "access")
    assert "quota by request (" in group.nearest.observed
    assert group.nearest.change.after == "any"
    loosened = api.plan(JOB, {"limits.providers": ["aws", "gcp"]}, at=AT, limit=1000)
    assert group.nearest.offer_id in {plan.offer_id for plan in loosened.plans}


def test_what_stands_between_is_told_with_the_plan():
    (plan,) = api.plan(JOB, {"limits.providers": ["runpod"]}, at=AT, limit=1).plans
    told = [w for w in plan.warnings if w.code == "access"]
    assert [w.severity for w in told] == ["info"]
    assert "payment methods card, crypto" in told[0].observed
    assert "quota 80 USD/h (spending limit of a new account)" in told[0].observed


def test_columns_are_those_asked_for():
    out = answer("offers", "--columns", "provider, shown_per_gpu_hour", "--top", "3", "--csv").out
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["provider", "shown_per_gpu_hour"]
    assert len(rows) == 4
    assert "did you mean price_per_hour" in run("offers", "--columns", "price_per_hou").err


@pytest.mark.parametrize(
    "asked", [{"colour": "red"}, {"min_gpus": "many"}, {"max_price": -1}, {"gpus": ["voodoo2"]}, {"sort": ["love"]}]
)
def test_what_makes_no_sense_is_refused(asked):
    with pytest.raises(api.Refused) as refused:
        api.offers(asked, at=AT)
    assert all(finding.subject and finding.action for finding in refused.value.findings)


# ---------------------------------------------------------------- other price lists


@pytest.fixture
def lists(tmp_path):
    """A folder with a price list of clouds, and no regions of its own."""
    folder = tmp_path / "lists"
    folder.mkdir()
    shutil.copy(catalog.DATA / "offers-clouds.csv", folder / "offers-mine.csv")
    return folder


@pytest.mark.parametrize("source", ["folder", "file", "columns"])
def test_other_lists_are_listed_and_planned_over(lists, tmp_path, source):
    path = {"folder": lists, "file": lists / "offers-mine.csv", "columns": tmp_path / "my.columns"}[source]
    if source == "columns":
        packed = run("offers", "pack", lists, path, "--as-of", DAY, "--json")
        assert (packed.code, packed.err) == (0, "")
        assert packed.document["schema"] == "rackrate.offers_pack/1"
        assert packed.document["size_bytes"] == path.stat().st_size
    listed = run("offers", "--offers", path, "--as-of", DAY, "--json", "--top", "1000").document
    of_clouds = catalog.listed()["offers-clouds.csv"]
    assert listed["considered"] == len(of_clouds)
    assert {offer["provider"] for offer in listed["offers"]} <= {row["provider"] for row in of_clouds}
    plan = run("plan", "examples/lora-7b.toml", "--offers", path, "--as-of", DAY, "--json").document
    assert plan["considered"] == len(of_clouds)
    assert plan["plans"][0]["offer_id"] in {offer["offer_id"] for offer in listed["offers"]}


def test_lines_that_cannot_be_read_are_told_with_the_next_step(lists, tmp_path):
    path = lists / "offers-mine.csv"
    path.write_text(path.read_text("utf-8") + "half,a,line\n", "utf-8")
    told = run("offers", "--offers", path, "--as-of", DAY, "--json").document["warnings"]
    assert [(w["code"], w["observed"]) for w in told] == [
        ("prices_unread", "offers-mine.csv: 1 line left out that could not be read")
    ]
    assert told[0]["action"] == f"`rackrate offers pack {path} FILE` names each"
    packed = run("offers", "pack", path, tmp_path / "my.columns", "--as-of", DAY)
    assert packed.code == 0
    assert "offers-mine.csv:" in packed.out
    assert "3 cells instead of 27" in " ".join(packed.out.split())


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("price", ["0", "-1", "nan"])
def test_a_price_that_is_none_is_left_out_and_harms_nothing(lists, tmp_path, price, columns):
    path = lists / "offers-mine.csv"
    header, first, *rest = path.read_text("utf-8").splitlines()
    cells = first.split(",")
    at = catalog.Record._fields.index("price")
    free = ",".join([*cells[:at], price, *cells[at + 1 :]])
    path.write_text("\n".join([header, free, *rest]) + "\n", "utf-8")
    if columns:
        long_lists.pack(lists, tmp_path / "my.columns", at=AT)
    found = api.offers({"history": True}, over=tmp_path / "my.columns" if columns else lists, limit=1000, at=AT)
    assert found.found == len(rest)
    assert [(one.reason, one.count, one.nearest) for one in found.left_out] == [("price_invalid", 1, None)]
    assert all(Decimal(offer.price_per_hour) > 0 for offer in found.offers)


BAD = {
    "empty.csv": b"",
    "other.csv": b"a,b,c\n1,2,3\n",
    "latin.csv": b"\xff\xfe\x00",
    "header.csv": ",".join(catalog.Record._fields).encode() + b"\n",
    "empty.columns": b"",
    "text.columns": b"no columns, only words that go on for a while\n" * 10,
    "huge.columns": b"\xff" * 64,
    "zeros.columns": b"\0" * 4096,
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("verb", [("offers",), ("plan", "examples/lora-7b.toml")])
def test_a_file_that_is_no_price_list_is_refused(tmp_path, name, verb):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    ended = run(*verb, "--offers", path, "--as-of", DAY, "--json")
    assert ended.code == 2
    assert all(problem["action"] and problem["subject"] for problem in ended.document["problems"])


def test_a_spoilt_header_of_a_file_of_columns_is_refused_or_read(lists, tmp_path):
    """Bytes of the header changed at random: an answer or a refusal, never a traceback."""
    path = tmp_path / "my.columns"
    long_lists.pack(lists, path, at=AT)
    content, chance = path.read_bytes(), random.Random(14)  # noqa: S311 - for mutations
    length = int.from_bytes(content[:8], "little")
    refused = 0
    for _ in range(60):
        spoilt = bytearray(content)
        for _ in range(3):
            spoilt[chance.randrange(length + 8)] = chance.randrange(256)
        path.write_bytes(spoilt)
        try:
            long_lists.context_over(path, AT)
        except api.Refused:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("cut", [0, 7, 8, 100, 5000, -1])
def test_a_file_of_columns_that_is_cut_off_is_refused(lists, tmp_path, cut):
    path = tmp_path / "my.columns"
    long_lists.pack(lists, path, at=AT)
    path.write_bytes(path.read_bytes()[:cut])
    assert run("offers", "--offers", path, "--as-of", DAY).code == 2


def test_pack_writes_over_nothing_but_its_own(lists, tmp_path):
    mine = tmp_path / "notes.txt"
    mine.write_text("mine", "utf-8")
    for target in (mine, lists / "offers-mine.csv", lists):
        ended = run("offers", "pack", lists, target)
        assert ended.code == 2
        assert "another file" in ended.err
    assert mine.read_text("utf-8") == "mine"
    path = tmp_path / "my.columns"
    assert [run("offers", "pack", lists, path, "--as-of", DAY).code for _ in range(2)] == [0, 0]


def test_a_list_too_long_to_be_read_at_each_start_is_to_be_packed(lists, monkeypatch):
    monkeypatch.setattr(long_lists, "LONG_BYTES", 1000)
    ended = run("offers", "--offers", lists)
    assert ended.code == 2
    assert "rackrate offers pack" in ended.err


def test_progress_is_told_while_long_lists_are_read(lists, tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "_BATCH", 10)
    told = []
    long_lists.pack(lists, tmp_path / "my.columns", at=AT, progress=lambda done, total: told.append((done, total)))
    size = (lists / "offers-mine.csv").stat().st_size
    assert told
    assert all(0 < done <= total == size for done, total in told)
