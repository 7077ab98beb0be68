"""Own facts lie over the bundled ones: what wins, what is new, and that plans use it."""

import os
import subprocess
import sys
from datetime import date
from decimal import Decimal

import pytest
from tests.app.own import CARD, CARDS, FACTS, RATES, RULES, offer

from rackrate import api
from rackrate.app.context import context, own_folders, usual_folder

AT = date(2026, 11, 30)
JOB = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}
BUNDLED = context(AT)
A40 = BUNDLED.book.accelerators["a40"]


def fact(value, **cells):
    """A file with one number of the A40."""
    row = {
        "accelerator": "a40",
        "quantity": "bandwidth",
        "value": str(value),
        "unit": "GB/s",
        "kind": "assumed",
        "seen_at": "2020-01-01",
    } | cells
    return f"{','.join(row)}\n{','.join(row.values())}\n"


# ---------------------------------------------------------------- numbers of cards


def test_an_own_number_goes_before_a_bundled_one_whatever_its_kind_and_date(own):
    card = own({"accelerator_facts.csv": fact(640)}).book.accelerators["a40"]
    assert card.bandwidth_bytes_per_s == 640e9
    assert card.facts["bandwidth_bytes_per_s"].source == "own"
    others = {name: f for name, f in card.facts.items() if name != "bandwidth_bytes_per_s"}
    assert others == {name: f for name, f in A40.facts.items() if name != "bandwidth_bytes_per_s"}


def test_an_own_number_under_a_condition_does_not_describe_the_card_as_it_comes(own):
    here = own({"accelerator_facts.csv": fact(250, condition="our cap", quantity="power_limit", unit="W")})
    assert here.book.accelerators["a40"].number("power_limit_w") == 300
    assert here.findings == ()


def test_an_own_number_under_a_condition_is_better_than_none(own):
    assert "memory_reserved_bytes" not in A40.facts
    here = own({"accelerator_facts.csv": fact(500, condition="driver 580", quantity="memory_reserved", unit="MiB")})
    assert here.book.accelerators["a40"].number("memory_reserved_bytes") == 500 * 2**20


@pytest.mark.parametrize(
    ("rows", "wins"),
    [
        (["640,GB/s,,assumed,2026-11-02", "630,GB/s,,measured,2026-11-01"], 630),
        (["640,GB/s,,measured,2026-11-01", "630,GB/s,,measured,2026-11-02"], 630),
        (["640,GB/s,ECC off,measured,2026-11-02", "630,GB/s,,assumed,2026-11-01"], 630),
    ],
    ids=["kind", "date", "condition"],
)
def test_own_numbers_rank_among_themselves_as_bundled_ones_do(own, rows, wins):
    header = "accelerator,quantity,value,unit,condition,kind,seen_at,source"
    text = "\n".join([header, *(f"a40,bandwidth,{row},note {n}" for n, row in enumerate(rows))])
    here = own({"accelerator_facts.csv": text})
    assert here.findings == ()
    assert here.book.accelerators["a40"].bandwidth_bytes_per_s == wins * 1e9


SIX = [
    "memory_total,48500,MiB",
    "bandwidth,1200,GB/s",
    "peak_fp32,80,TFLOPS",
    "peak_bf16,160,TFLOPS",
    "peak_fp16,160,TFLOPS",
    "power_limit,300,W",
]


def new_card(facts=SIX):
    rows = "\n".join(f"neo-48,{row},measured,2026-11-01" for row in facts)
    return {"accelerators.csv": f"{CARDS}\n{CARD}\n", "accelerator_facts.csv": f"{FACTS}\n{rows}\n"}


def test_a_new_card_with_six_facts_is_planned_on(own):
    own(new_card() | {"offers.csv": offer(card="Neo 48GB", price="0.5")})
    answer = api.plan(JOB, {"limits.gpus": ["neo-48"]}, at=AT)
    plan = answer.plans[0]
    assert (plan.accelerator, plan.product, plan.price_source, plan.price_own) == ("neo-48", "Neo 48GB", "own", True)
    assert plan.fit.verdict == "fits"
    assert plan.fit.usable_bytes < 48500 * 2**20
    assert api.gpu(["Neo 48GB"], at=AT).gpus[0].prices[0].per_gpu_hour == "0.500000"


def test_a_new_card_without_a_drivers_reading_gets_its_total_by_the_rule_of_its_family(own):
    card = own(new_card(SIX[1:])).book.accelerators["neo-48"]
    total = card.facts["memory_total_bytes"]
    assert str(total.kind) in {"derived", "assumed"}
    assert 0.9 * 48 * 2**30 < total.value <= 48 * 2**30


def test_a_card_described_anew_keeps_the_bundled_numbers_and_takes_the_own_identity(own):
    row = "a40,NVIDIA,A40 of ours,Ampere,8.6,PCIe,GDDR6,48"
    card = own({"accelerators.csv": f"{CARDS}\n{row}\n"}).book.accelerators["a40"]
    assert card.product == "A40 of ours"
    assert card.source == "own"
    assert dict(card.facts.items()) == dict(A40.facts.items())


# ---------------------------------------------------------------- whole records


def test_an_own_model_is_understood_and_keeps_its_defaults(own):
    header = "id,params_total,hidden_size,layers,attention_heads,kv_heads,head_dim,intermediate_size,vocab_size,tie_embeddings"
    here = own({"models.csv": f"{header}\nours/chat,6738415616,4096,32,32,32,128,11008,32000,false\n"})
    model = here.book.model("ours/chat")
    assert (model.params_active, model.layers_full, model.layers_windowed) == (6738415616, 32, 0)
    assert here.book.model_ids == (*BUNDLED.book.model_ids, "ours/chat")
    mine, its = (api.fit({"model": m, "task": "lora", "limits": {"gpus": ["a40"]}}) for m in ("chat", JOB["model"]))
    assert mine.peak_bytes == its.peak_bytes


def test_own_formats_and_engines_replace_or_join(own):
    vllm = open_bundled("engines/vllm.toml").replace("memory_share = 0.92", "memory_share = 0.8")
    here = own(
        {
            "formats.csv": "id,bits_per_weight\nint3-ours,3.25\n",
            "engines/vllm.toml": vllm,
            "engines/mine.toml": vllm.replace('id = "vllm"', 'id = "vllm-ours"'),
        }
    )
    assert here.findings == ()
    assert here.book.formats["int3-ours"].bits_per_weight == 3.25
    assert here.book.engine("vllm").serving.memory_share == 0.8
    assert here.book.engine_ids == (*BUNDLED.book.engine_ids, "vllm-ours")


def open_bundled(name):
    from rackrate.facts import bundled

    return (bundled.DATA / name).read_text("utf-8")


# ---------------------------------------------------------------- rules, providers, rates


def test_an_own_rule_goes_before_a_bundled_one_and_changes_the_rounding(own):
    job = JOB | {"limits": {"providers": ["aws"], "gpus": ["a10g"], "gpu_counts": [1], "regions": ["us-east-1"]}}
    before = api.plan(job, at=AT).plans[0]
    own({"billing_rules.csv": f"{RULES}\naws,granularity_s,86400,s,running,2019-01-01\n"})
    after = api.plan(job, at=AT).plans[0]
    assert after.offer_id == before.offer_id
    assert before.billed_hours % 24 != 0
    assert after.billed_hours % 24 == 0
    line = next(line for line in after.cost.lines if line.name == "compute")
    assert "granularity_s = 86400 s [running] (own, seen 2019-01-01)" in line.rule


def test_an_own_rule_that_is_not_yet_in_force_waits(own):
    rule = "aws,granularity_s,3600,s,running,2026-11-01,2027-01-01"
    here = own({"billing_rules.csv": f"{RULES},effective_from\n{rule}\n"})
    rules = here.book.rules_of("aws")
    assert rules.find("granularity_s", "running", at=AT).value == "1"
    assert rules.find("granularity_s", "running", at=date(2027, 1, 1)).value == "3600"


def test_an_own_provider_has_names_and_rules(own):
    here = own(
        {
            "providers.csv": "id,aliases,currency\nourcloud,our cloud|OC,EUR\n",
            "billing_rules.csv": f"{RULES}\nOC,granularity_s,60,s,running,2026-11-01\n",
        }
    )
    assert here.findings == ()
    assert here.book.rules_of("our cloud").find("granularity_s", "running").number == 60


def test_rules_of_a_seller_of_own_prices_need_no_description_of_it(own):
    here = own({"offers.csv": offer(), "billing_rules.csv": f"{RULES}\nmybox,granularity_s,1,s,running,2026-11-01\n"})
    assert here.findings == ()


def test_an_own_rate_brings_its_date_and_source(own):
    here = own(
        {"exchange_rates.csv": f"{RATES}\nUSD,TWD,31.9,2026-11-27\n", "offers.csv": offer(currency="TWD", price="40")}
    )
    assert here.findings == ()
    assert here.book.rates.factor("USD", "TWD") == pytest.approx(Decimal("31.9"), rel=Decimal("1e-20"))
    assert here.book.rates.on == BUNDLED.book.rates.on
    assert here.book.rates.source.endswith("; TWD of 2026-11-27: own")
    plan = api.plan(JOB, {"limits.providers": ["mybox"]}, at=AT)
    assert Decimal(plan.plans[0].cost.billed) > 30 * Decimal(plan.plans[0].cost.likely)
    assert "TWD of 2026-11-27: own" in plan.rates_source


def test_a_whole_set_of_own_rates_has_its_own_day(own):
    rows = "\n".join(f"EUR,{code},{rate},2026-11-27" for code, rate in BUNDLED.book.rates.per_base.items())
    rates = own({"exchange_rates.csv": f"{RATES}\n{rows}\n"}).book.rates
    assert rates.on == date(2026, 11, 27)
    assert rates.per_base == BUNDLED.book.rates.per_base


# ---------------------------------------------------------------- folders


def test_without_a_folder_nothing_changes():
    assert own_folders() == ()
    assert context(AT).digest == BUNDLED.digest


def test_the_digest_stands_for_what_the_folder_holds(own, tmp_path, monkeypatch):
    first = own({"accelerator_facts.csv": fact(640)}).digest
    assert first != BUNDLED.digest
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "accelerator_facts.csv").write_text(fact(640), "utf-8")
    monkeypatch.setenv("RACKRATE_FACTS", str(other))
    assert context(AT).digest == first
    (other / "accelerator_facts.csv").write_text(fact(641), "utf-8")
    assert context(AT).digest != first


def test_of_several_folders_the_first_goes_before_the_others(tmp_path, monkeypatch):
    for name, value in (("mine", 640), ("ours", 630)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "accelerator_facts.csv").write_text(fact(value, seen_at=f"2026-11-{value - 620}"), "utf-8")
        (tmp_path / name / "formats.csv").write_text(f"id,bits_per_weight\nours,{value / 100}\n", "utf-8")
        rule = f"aws,granularity_s,{value},s,running,2026-11-01"
        (tmp_path / name / "billing_rules.csv").write_text(f"{RULES}\n{rule}\n", "utf-8")
    for order, wins in ((("mine", "ours"), 640), (("ours", "mine"), 630)):
        monkeypatch.setenv("RACKRATE_FACTS", os.pathsep.join(str(tmp_path / name) for name in order))
        here = context(AT)
        assert here.findings == ()
        assert here.book.accelerators["a40"].bandwidth_bytes_per_s == wins * 1e9
        assert here.book.formats["ours"].bits_per_weight == wins / 100
        assert here.book.rules_of("aws").find("granularity_s", "running").number == wins


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of other platforms")
def test_the_usual_folder_is_read_when_the_variable_is_not_set(tmp_path, monkeypatch):
    monkeypatch.delenv("RACKRATE_FACTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert usual_folder() == tmp_path / "rackrate" / "facts"
    assert own_folders() == ()
    usual_folder().mkdir(parents=True)
    (usual_folder() / "accelerator_facts.csv").write_text(fact(640), "utf-8")
    assert own_folders() == (str(usual_folder()),)
    assert context(AT).book.accelerators["a40"].bandwidth_bytes_per_s == 640e9


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("win32", "AppData/Roaming"),
        ("darwin", "Library/Application Support"),
        ("linux", ".config"),
        ("freebsd14", ".config"),
    ],
)
def test_each_platform_has_its_folder(platform, expected, monkeypatch):
    monkeypatch.delenv("APPDATA", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/of/someone")
    monkeypatch.setattr(sys, "platform", platform)
    assert usual_folder().as_posix() == f"/home/of/someone/{expected}/rackrate/facts"


def test_looking_for_own_facts_loads_nothing_where_there_are_none():
    code = (
        "import sys; from rackrate.app.context import context; context(); print([m for m in sys.modules if 'own' in m])"
    )
    env = os.environ | {"RACKRATE_FACTS": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    found = done.stdout
    assert "rackrate.app.overlay" not in found
    assert "rackrate" not in found
