"""The door: every record can be made, the digest stands for the content, a start costs little."""

import shutil
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from rackrate.evidence import Fact, Range
from rackrate.facts import bundled
from rackrate.facts.billing import BillingRules
from rackrate.facts.engine_speed import Host
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.records import Claim, MigProfile, Provider

ENGINES = {
    "vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers", "torchtune", "axolotl", "peft-trl", "deepspeed",
    "fsdp", "diffusers", "litgpt", "llama-factory", "own-loop", "autoawq", "unsloth",
    "megatron", "gpt-fast", "exllamav2", "fastertransformer", "deepspeed-mii", "faster-whisper",
}  # fmt: skip


def test_everything_that_is_listed_can_be_made(book):
    assert len(book.accelerators) >= 142
    assert all(isinstance(fact, Fact) for card in book.accelerators.values() for fact in card.facts.values())
    assert len(book.model_ids) >= 283
    assert all(isinstance(book.model(name), Model) and book.model(name).id == name for name in book.model_ids)
    assert set(book.engine_ids) == ENGINES
    assert all(book.engine(name).id == name for name in book.engine_ids)
    assert all(isinstance(fmt, WeightFormat) and fmt.id == name for name, fmt in book.formats.items())
    assert all(isinstance(rules, BillingRules) and rules.rules for rules in book.billing.values())
    assert sum(len(rules.rules) for rules in book.billing.values()) >= 218


def test_models_keep_the_order_of_the_file(book, tables):
    assert list(book.model_ids) == [row["id"] for row in tables["models.csv"]]


def test_an_id_that_is_not_known_is_a_key_error(book):
    for look_up in (book.model, book.engine, book.accelerators.__getitem__, book.formats.__getitem__):
        with pytest.raises(KeyError):
            look_up("no-such-id")


def test_a_model_row_arrives_whole(book):
    llama = book.model("meta-llama/Llama-2-13b-hf")
    assert (llama.params_total, llama.layers, llama.kv_heads, llama.head_dim) == (13_015_864_320, 40, 40, 128)
    assert llama.tie_embeddings is False
    assert llama.layers_full == 40
    assert llama.experts is None
    deepseek = book.model("deepseek-ai/DeepSeek-V3")
    assert deepseek.is_mla
    assert (deepseek.mla_kv_lora_rank, deepseek.mla_qk_rope_head_dim) == (512, 64)
    assert deepseek.params_active < deepseek.params_total / 15


def test_an_engine_file_arrives_in_base_units(book):
    vllm = book.engine("vllm")
    assert vllm.serving is not None
    assert vllm.serving.memory_share == 0.92
    assert vllm.serving.share_of == "total"
    assert isinstance(vllm.serving.graph_bytes, Range)
    assert vllm.serving.graph_bytes.high > 2**30
    assert vllm.speed.host is Host.GRAPHS
    assert 1e-6 < vllm.speed.launch_s_per_layer < 1e-3
    llama = book.engine("llama.cpp").serving
    assert llama is not None
    assert llama.memory_share is None
    trt = book.engine("tensorrt-llm").serving
    assert trt is not None
    assert (trt.memory_share, trt.share_of) == (0.9, "free")


def test_training_engines_train_and_serving_engines_serve(book):
    for name in book.engine_ids:
        engine = book.engine(name)
        assert bool(engine.training) == bool(engine.tasks & {"lora", "qlora", "full_finetune", "pretrain"}), name
        assert bool(engine.serving) == bool(engine.tasks & {"inference", "diffusion"}), name


def test_fp8_compute_needs_more_than_fp8_weights(book):
    assert book.formats["fp8"].min_compute_capability == (8, 9)
    assert book.formats["fp8"].computes_in == "fp8"
    assert book.formats["fp8-weight-only"].computes_in is None
    assert book.accelerators["a40"].compute_capability < book.formats["fp8"].min_compute_capability
    assert book.accelerators["a40"].compute_capability >= book.formats["fp8-weight-only"].min_compute_capability


def test_nf4_bits_follow_from_the_block_sizes(book):
    assert book.formats["nf4"].bits_per_weight == 4 + 32 / 64
    assert book.formats["nf4-dq"].bits_per_weight == pytest.approx(4 + 8 / 64 + 32 / (64 * 256), abs=5e-4)
    assert book.formats["mxfp4"].bits_per_weight == 4 + 8 / 32
    assert book.formats["nvfp4"].bits_per_weight == 4 + 8 / 16
    assert book.formats["gguf-q6_k"].bits_per_weight == 210 * 8 / 256


def test_rates_are_of_one_day_and_name_their_source(book):
    rates = book.rates
    assert (rates.base, rates.on) == ("EUR", date(2026, 10, 30))
    assert set(rates.per_base) == {"USD", "CNY", "JPY", "HKD", "GBP"}
    assert rates.factor("USD", "CNY") == Decimal("7.4326") / Decimal("1.1172")
    assert rates.source == "ECB euro foreign exchange reference rates, 2026-10-30"


def test_rules_are_found_by_every_name_of_a_provider(book):
    assert book.rules_of("九章云极 AladdinEdu").provider == "AladdinEdu"
    assert book.rules_of("autodl").provider == "AutoDL"
    assert book.rules_of("shadeform:crusoe").provider == "crusoe"
    assert book.rules_of("primeintellect:datacrunch").provider == "verda"
    assert book.rules_of("nobody").rules == ()
    assert book.rules_of("shadeform:denvr").rules == ()


def test_each_provider_of_a_rule_is_described_and_names_are_unambiguous(book):
    providers = bundled.providers()
    assert all(isinstance(provider, Provider) for provider in providers)
    assert set(book.billing) <= {provider.id for provider in providers}
    names = [name for provider in providers for name in (provider.id, *provider.aliases)]
    assert len(names) == len(set(names))


def test_mig_profiles_name_known_cards(book):
    profiles = bundled.mig_profiles()
    assert len(profiles) == 100
    assert all(
        isinstance(profile, MigProfile) and set(profile.accelerators) <= set(book.accelerators) for profile in profiles
    )
    slices = {p.profile: p for p in profiles if "a100-sxm4-40" in p.accelerators}
    assert slices["1g.5gb"].max_instances == 7
    assert slices["1g.5gb"].sm_fraction == Fraction(1, 7)
    larger = {p.profile: p for p in profiles if "a100-sxm4-80" in p.accelerators}
    assert larger["1g.10gb"].max_instances == 7  # claim C20: the slices are twice as large, not more


def test_claims_have_a_verdict_and_a_right_answer():
    claims = bundled.claims()
    assert len(claims) == 54
    assert all(isinstance(claim, Claim) and claim.right_answer and claim.condition_or_source for claim in claims)
    assert {claim.verdict for claim in claims} == {"right", "wrong", "conditional", "unsupported"}


def test_the_digest_is_of_the_content(book, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(bundled.DATA, copy)
    assert bundled.load(copy).digest == book.digest
    for name in ("formats.csv", "engines/vllm.toml", "claims.csv"):
        file = copy / name
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert bundled.load(copy).digest != book.digest, name
        file.write_bytes(content)
    assert bundled.load(copy).digest == book.digest


def test_a_header_that_moved_is_refused(tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(bundled.DATA, copy)
    facts = copy / "accelerator_facts.csv"
    facts.write_text(facts.read_text("utf-8").replace("value,unit", "unit,value", 1), "utf-8")
    with pytest.raises(ValueError, match="columns"):
        bundled.load(copy)
