"""What is wrong in own files is told with file, row, key and next step, and sinks nothing but itself."""

import os
import stat
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.app.own import CARD, CARDS, FACTS, OFFERS, RATES, RULES, offer, one

from rackrate import api
from rackrate.app.context import context

AT = date(2026, 11, 30)
JOB = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}
VLLM = 'id = "mine"\n'


def check(own, files):
    own(files)
    found = api.check_facts(at=AT)
    assert found.good is (not found.problems)
    return found.problems


def counts(name):
    found = api.check_facts(at=AT)
    row = one(each for each in found.files if each.file == name)
    return row.own, row.left_out


# ---------------------------------------------------------------- one fault in one row

PRICES = [
    ({"card": "RTX 409"}, "unknown_name", "card", "rtx4090"),
    ({"card": "A100 80GB", "memory_gb": "24"}, "conflict", "card", "leave memory_gb"),
    ({"gpus": "two"}, "bad_value", "gpus", "digits"),
    ({"gpus": "0"}, "out_of_bounds", "gpus", ""),
    ({"price": "-3"}, "out_of_bounds", "price", ""),
    ({"price": "0"}, "out_of_bounds", "price", "what an hour of it costs you"),
    ({"price": "1.200,50"}, "bad_syntax", "row", "quotes"),
    ({"price": "1 200"}, "bad_value", "price", "number alone"),
    ({"price": "$3"}, "bad_value", "price", "currency has its own column"),
    ({"price": "12 CNY"}, "bad_value", "price", "currency has its own column"),
    ({"price": "nan"}, "out_of_bounds", "price", ""),
    ({"price": "inf"}, "out_of_bounds", "price", ""),
    ({"price": ""}, "missing_value", "price", "fill it in"),
    ({"currency": "RMB"}, "unknown_name", "currency", "exchange_rates.csv"),
    ({"currency": "TWD"}, "unknown_name", "currency", "exchange_rates.csv"),
    ({"term": "fortnight"}, "unknown_name", "term", ""),
    ({"term": "hours"}, "unknown_name", "term", "hour"),
    ({"term": "credit_pack"}, "missing_value", "hours_in_term", "how many hours"),
    ({"hours_in_term": "-1"}, "out_of_bounds", "hours_in_term", ""),
    ({"prepaid": "yes"}, "bad_value", "prepaid", "true"),
    ({"observed_on": "02.11.2026"}, "bad_value", "observed_on", "2026-11-30"),
    ({"observed_on": "2026-13-01"}, "bad_value", "observed_on", ""),
    ({"observed_how": "told"}, "unknown_name", "observed_how", ""),
    ({"flags": "negociated"}, "unknown_name", "flags", "negotiated"),
    ({"flags": "own"}, "unknown_name", "flags", ""),
    ({"excludes": "disks"}, "unknown_name", "excludes", "disk"),
    ({"share": "2"}, "bad_value", "share", "fraction"),
    ({"share": "1/0"}, "bad_value", "share", "fraction"),
    ({"vcpus": "many"}, "bad_value", "vcpus", ""),
]


@pytest.mark.parametrize(("cells", "code", "column", "step"), PRICES, ids=str)
def test_a_bad_price_row_is_told_and_the_good_one_beside_it_counts(own, cells, code, column, step):
    header, good = offer(name="good").splitlines()
    bad = offer(**cells).splitlines()
    problem = one(check(own, {"offers.csv": "\n".join(bad), "offers-2.csv": f"{header}\n{good}"}))
    assert (problem.code, problem.subject) == (code, f"offers.csv:2 {column}")
    assert step in problem.action
    assert counts("offers.csv") == (1, 1)
    found = api.plan(JOB, {"limits.providers": ["mybox"]}, at=AT)
    assert [plan.offer for plan in found.plans] == ["good"]
    warning = one(w for w in found.warnings if w.code == "overlay_row_ignored")
    assert (warning.severity, warning.subject) == ("warning", problem.subject)
    assert warning.action == problem.action


FACT_FILES = [
    (
        "accelerator_facts.csv",
        f"{FACTS}\na4,bandwidth,640,GB/s,measured,2026-11-01",
        "unknown_name",
        "accelerator",
        "a4",
    ),
    (
        "accelerator_facts.csv",
        f"{FACTS}\na40,bandwith,640,GB/s,measured,2026-11-01",
        "unknown_name",
        "quantity",
        "bandwidth",
    ),
    ("accelerator_facts.csv", f"{FACTS}\na40,bandwidth,640,GiB/s,measured,2026-11-01", "bad_value", "unit", "convert"),
    (
        "accelerator_facts.csv",
        f"{FACTS}\na40,bandwidth,0.64,GB/s,measured,2026-11-01",
        "out_of_bounds",
        "value",
        "unit",
    ),
    (
        "accelerator_facts.csv",
        f"{FACTS}\na40,bandwidth,640,GB/s,mesured,2026-11-01",
        "unknown_name",
        "kind",
        "measured",
    ),
    (
        "accelerator_facts.csv",
        f"{FACTS}\na40,bandwidth,640,GB/s,measured,yesterday",
        "bad_value",
        "seen_at",
        "2026-11-30",
    ),
    (
        "accelerator_facts.csv",
        f"{FACTS}\na40,memory_total,96000,MiB,measured,2026-11-01",
        "out_of_bounds",
        "value",
        "label",
    ),
    ("accelerators.csv", f"{CARDS}\n{CARD.replace('9.0', 'nine')}", "bad_value", "compute_capability", "8.6"),
    ("accelerators.csv", f"{CARDS}\n{CARD.replace(',48', ',48 GB')}", "bad_value", "memory_sold_gb", "without unit"),
    ("models.csv", "id,params_total\nours/x,7B", "bad_value", "params_total", "without unit"),
    ("models.csv", "id,params_total,layers\nours/x,7000000000,many", "bad_value", "layers", "whole number"),
    ("formats.csv", "id,bits_per_weight\nx,64", "out_of_bounds", "bits_per_weight", ""),
    ("formats.csv", "id,bits_per_weight,computes_in\nx,4,fp7", "bad_value", "computes_in", "precision"),
    ("providers.csv", "id,aliases\nours,AutoDL", "duplicate", "aliases", "remove one"),
    ("billing_rules.csv", f"{RULES}\nawss,granularity_s,1,s,running,2026-11-01", "unknown_name", "provider", "aws"),
    (
        "billing_rules.csv",
        f"{RULES}\naws,granularity,1,s,running,2026-11-01",
        "unknown_name",
        "rule_key",
        "granularity_s",
    ),
    (
        "billing_rules.csv",
        f"{RULES}\naws,granularity_s,hourly,s,running,2026-11-01",
        "bad_value",
        "value",
        "without unit",
    ),
    ("billing_rules.csv", f"{RULES}\naws,granularity_s,0,s,running,2026-11-01", "out_of_bounds", "value", ""),
    (
        "billing_rules.csv",
        f"{RULES}\naws,stopped_bills_compute,yes,,stopped,2026-11-01",
        "bad_value",
        "value",
        "write one",
    ),
    (
        "billing_rules.csv",
        f"{RULES}\naws,minimum_scope,per_stop,,running,2026-11-01",
        "unknown_name",
        "value",
        "per_start",
    ),
    ("billing_rules.csv", f"{RULES}\naws,ip_price,NaN,USD/h,any,2026-11-01", "out_of_bounds", "value", "unit"),
    ("billing_rules.csv", f"{RULES}\naws,ip_price,1,USD/h,runing,2026-11-01", "unknown_name", "state", "running"),
    ("exchange_rates.csv", f"{RATES}\nUSD,TWD,-1,2026-11-27", "out_of_bounds", "per_base", ""),
    ("exchange_rates.csv", f"{RATES}\nUSD,twd,32,2026-11-27", "bad_value", "currency", "ISO 4217"),
    ("exchange_rates.csv", f"{RATES}\nTWD,USD,0.031,2026-11-27", "unknown_name", "base", ""),
    ("exchange_rates.csv", f"{RATES}\nUSD,EUR,0.9,2026-11-27", "bad_value", "currency", "invert"),
    ("regions.csv", "region,country\nmoon,", "missing_value", "country", "fill it in"),
]


@pytest.mark.parametrize("case", FACT_FILES, ids=lambda case: f"{case[0]} {case[3]} {case[1][-40:]}")
def test_a_bad_fact_row_is_told_and_does_not_count(own, case):
    name, text, code, column, step = case
    before = context(AT).book
    problem = one(check(own, {name: text}))
    assert (problem.code, problem.subject) == (code, f"{name}:2 {column}")
    assert step in problem.action
    assert counts(name) == (0, 1)
    after = context(AT).book
    assert dict(after.accelerators) == dict(before.accelerators)
    assert (after.model_ids, after.rates, dict(after.formats)) == (before.model_ids, before.rates, dict(before.formats))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "accelerator_facts.csv",
            f"{FACTS}\na40,bandwidth,640,GB/s,measured,2026-11-01\na40,bandwidth,640,GB/s,measured,2026-11-01",
        ),
        ("formats.csv", "id,bits_per_weight\nx,4\nx,5"),
        ("accelerators.csv", f"{CARDS}\n{CARD}\n{CARD}"),
    ],
    ids=["fact", "format", "card"],
)
def test_a_row_twice_counts_once(own, name, text):
    problem = one(check(own, {name: text}))
    assert (problem.code, problem.subject.partition(" ")[0]) == ("duplicate", f"{name}:3")
    assert counts(name) == (1, 1)


def test_an_engine_file_names_its_key(own):
    from rackrate.facts import bundled

    text = (bundled.DATA / "engines/vllm.toml").read_text("utf-8")
    problems = check(
        own,
        {
            "engines/a.toml": VLLM,
            "engines/b.toml": "id = ",
            "engines/c.toml": text.replace("page_tokens", "page_token"),
        },
    )
    assert [(p.code, p.subject) for p in problems] == [
        ("bad_syntax", "engines/b.toml"),
        ("bad_value", "engines/a.toml"),
        ("bad_value", "engines/c.toml"),
    ]
    assert "serving.page_token: unknown key" in problems[2].observed
    assert counts("engines") == (0, 3)


# ---------------------------------------------------------------- whole files


@pytest.mark.parametrize(
    "case",
    [
        ("offers.csv", offer(name="报价").encode("gbk"), "file_unreadable", "offers.csv", "UTF-8"),
        ("offers.csv", offer().encode("utf-16"), "file_unreadable", "offers.csv", "UTF-8"),
        ("offers.csv", offer().replace(",", ";"), "bad_syntax", "offers.csv:1", "commas"),
        ("offers.csv", offer().replace(",", "\t"), "bad_syntax", "offers.csv:1", "commas"),
        ("offers.csv", "", "missing_value", "offers.csv:1", "names its columns"),
        ("offers.csv", "\n\n , \n", "missing_value", "offers.csv:1", "names its columns"),
        ("offers.csv", offer().replace("price", "pirce"), "unknown_key", "offers.csv:1 pirce", "price"),
        ("offers.csv", offer(minimum_term="2"), "unknown_key", "offers.csv:1 minimum_term", "minimum_terms"),
        (
            "offers.csv",
            offer().replace("provider,", "provider,provider,", 1),
            "duplicate",
            "offers.csv:1 provider",
            "one",
        ),
        ("offer.csv", offer(), "unknown_name", "offer.csv", "offers.csv"),
        ("accelerator.csv", CARDS, "unknown_name", "accelerator.csv", "accelerators.csv"),
        ("claims.csv", "id\nx", "unknown_name", "claims.csv", ""),
        ("vllm.toml", VLLM, "unknown_name", "vllm.toml", ""),
        ("models.csv", "id\nx", "missing_value", "models.csv:1 params_total", "add the column"),
    ],
    ids=[
        "gbk",
        "utf-16",
        "semicolons",
        "tabs",
        "empty",
        "blank",
        "misspelt",
        "nearly",
        "twice",
        "name",
        "name2",
        "ours",
        "place",
        "missing",
    ],
)
def test_a_file_that_cannot_be_read(own, case):
    name, content, code, subject, step = case
    problems = check(own, {name: content, "offers-good.csv": offer(name="good")})
    problem = problems[0]
    assert (problem.code, problem.subject) == (code, subject)
    assert step in problem.action
    assert {p.subject.partition(":")[0] for p in problems} == {name}
    assert [plan.offer for plan in api.plan(JOB, {"limits.providers": ["mybox"]}, at=AT).plans] == ["good"]


def test_a_missing_column_is_named(own):
    text = offer().replace(",currency", "").replace(",USD", "")
    problem = one(check(own, {"offers.csv": text}))
    assert (problem.code, problem.subject, problem.expected) == (
        "missing_value",
        "offers.csv:1 currency",
        "a column currency",
    )


def test_rows_before_an_unclosed_quote_count(own):
    problem = one(check(own, {"offers.csv": f'{OFFERS}\n{offer().splitlines()[1]}\nmybox,"no end,a40,1\nx,y\n'}))
    assert (problem.code, problem.subject) == ("bad_syntax", "offers.csv:3")
    assert counts("offers.csv")[0] == 1


def test_a_byte_order_mark_crlf_blank_lines_and_blanks_do_no_harm(own):
    text = "\ufeff" + offer(provider=" mybox ", currency="USD ").replace("\n", "\r\n\r\n")
    assert check(own, {"offers.csv": text}) == []
    assert counts("offers.csv") == (1, 0)


def test_line_numbers_count_lines_inside_quotes(own):
    problem = one(
        check(
            own,
            {
                "offers.csv": f'{OFFERS},note\nmybox,a,a40,1,1,USD,hour,2026-11-01,"two\nlines"\nmybox,b,a40,1,x,USD,hour,2026-11-01,\n'
            },
        )
    )
    assert problem.subject == "offers.csv:4 price"


def test_files_that_are_not_for_rackrate_are_left_alone(own):
    assert (
        check(own, {"README.md": "hello", ".hidden.csv": "x", "engines/notes.txt": "y", "data.xlsx": b"\x00\xff"}) == []
    )


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(own, tmp_path):
    own({"offers.csv": offer()})
    (tmp_path / "own/offers.csv").chmod(stat.S_IWUSR)
    assert one(api.check_facts(at=AT).problems).code == "file_unreadable"


@pytest.mark.parametrize("where", ["nowhere", "a-file"])
def test_a_variable_that_points_nowhere_is_a_warning(where, tmp_path, monkeypatch):
    (tmp_path / "a-file").write_text("x", "utf-8")
    folder = str(tmp_path / where)
    monkeypatch.setenv("RACKRATE_FACTS", folder)
    found = api.plan(JOB, limit=1, at=AT)
    assert found.plans
    warning = one(w for w in found.warnings if w.code == "file_unreadable")
    assert (warning.severity, warning.subject) == ("warning", folder)
    assert "facts path" in warning.action
    problem = one(api.check_facts(at=AT).problems)
    assert problem.code == "file_unreadable"


def test_a_folder_with_a_nul_in_its_name_is_told():
    assert one(api.check_facts("a\0b", at=AT).problems).code == "file_unreadable"


def test_an_answer_names_a_few_bad_rows_and_counts_the_rest(own):
    rows = [f"mybox,{n},a40,1,-{n},USD,hour,2026-11-01" for n in range(1, 10)]
    own({"offers.csv": "\n".join([OFFERS, *rows])})
    found = [w for w in api.plan(JOB, limit=1, at=AT).warnings if w.code == "overlay_row_ignored"]
    assert [w.observed for w in found] == [
        "offers.csv:2 price: out of bounds -1",
        "offers.csv:3 price: out of bounds -2",
        "offers.csv:4 price: out of bounds -3",
        "6 more",
    ]
    assert {w.action for w in found} == {"`rackrate facts check` says what to do about each"}
    fit = api.fit(JOB, {"limits.gpus": ["a40"]}, at=AT)
    assert [w for w in fit.warnings if w.code == "overlay_row_ignored"] == found
    assert api.gpu("a40", at=AT).warnings == found


NAMES = ["offers.csv", "accelerators.csv", "accelerator_facts.csv", "models.csv", "billing_rules.csv", "exchange_rates.csv",
         "formats.csv", "providers.csv", "regions.csv", "engines/x.toml"]  # fmt: skip
GOOD = {
    "offers.csv": offer(),
    "accelerators.csv": f"{CARDS}\n{CARD}\n",
    "accelerator_facts.csv": f"{FACTS}\na40,bandwidth,640,GB/s,measured,2026-11-01\n",
    "billing_rules.csv": f"{RULES}\naws,granularity_s,60,s,running,2026-11-01\n",
    "exchange_rates.csv": f"{RATES}\nUSD,TWD,31.9,2026-11-27\n",
    "models.csv": "id,params_total,hidden_size,layers\nours/x,7000000000,4096,32\n",
    "formats.csv": "id,bits_per_weight\nx,4\n",
    "providers.csv": "id,aliases\nours,mine\n",
    "regions.csv": "region,country\nmoon,LU\n",
    "engines/x.toml": VLLM,
}
JUNK = ["", ",", '"', "\n", "-1", "1e999", "nan", "\x00", "true", "½", "1/7", "2026-02-30", "x" * 300, "\ufeff", "=1+1"]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(NAMES),
    cuts=st.lists(st.tuples(st.integers(0, 120), st.integers(0, 9), st.sampled_from(JUNK)), min_size=1, max_size=4),
)
def test_whatever_stands_in_a_file_nothing_breaks(own, name, cuts):
    text = GOOD[name]
    for at, length, junk in cuts:
        text = text[:at] + junk + text[at + length :]
    own({name: text.encode("utf-8", "surrogatepass")})
    here = context(AT)
    for card in ("a40", "rtx4090"):
        assert here.book.accelerators[card].facts
    found = api.check_facts(at=AT)
    assert all(p.code and p.subject and p.action for p in found.problems)
