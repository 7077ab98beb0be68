"""The check before a release: the bundled files pass, and each planted fault is seen where it was planted."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rackrate.facts import bundled
from rackrate.facts.validate import validate
from rackrate.problems import Code

TOOL = Path(__file__).parents[2] / "tools" / "check_facts.py"


def test_the_bundled_facts_have_no_fault(tables, engines):
    assert validate(tables, engines) == []


def change(table, column, value, row=0, **more):
    def plant(tables, _engines):
        tables[table][row][column] = value
        tables[table][row].update(more)

    return plant


def fact_row(tables, quantity, card="a40"):
    rows = tables["accelerator_facts.csv"]
    return next(i for i, r in enumerate(rows) if r["quantity"] == quantity and r["accelerator"] == card)


def change_fact(quantity, column, value):
    def plant(tables, _engines):
        tables["accelerator_facts.csv"][fact_row(tables, quantity)][column] = value

    return plant


def repeat(table):
    def plant(tables, _engines):
        tables[table].append(dict(tables[table][0]))

    return plant


def change_baseline(of, what, **cells):
    """Change a figure ``what`` of a card that the source calls ``of``."""

    def plant(tables, _engines):
        found = [r for r in tables["baselines.csv"] if (r["label"], r["quantity"]) == (of, what)]
        found[0].update(cells)

    return plant


def engine(key, value, *, name="engines/vllm.toml", section=None):
    def plant(_tables, engines):
        where = engines[name][section] if section else engines[name]
        where[key] = value

    return plant


def without(key, *, section=None, name="engines/vllm.toml"):
    def plant(_tables, engines):
        del (engines[name][section] if section else engines[name])[key]

    return plant


FAULTS = [
    # sources
    (change("accelerators.csv", "source", ""), Code.NO_SOURCE, "accelerators.csv:2 source"),
    (change_fact("bandwidth", "source", "  "), Code.NO_SOURCE, "source"),
    (change("models.csv", "source", "shared/research/facts.md"), Code.NO_SOURCE, "models.csv:2 source"),
    (change("models.csv", "notes", "see shared/reference"), Code.NO_SOURCE, "models.csv:2 notes"),
    (change("claims.csv", "condition_or_source", ""), Code.NO_SOURCE, "claims.csv:2"),
    (change("billing_rules.csv", "source", ""), Code.NO_SOURCE, "billing_rules.csv:2"),
    # units and numbers
    (change_fact("bandwidth", "unit", "GiB/s"), Code.BAD_VALUE, "unit"),
    (change_fact("bandwidth", "value", "696 GB/s"), Code.BAD_VALUE, "value"),
    (change_fact("bandwidth", "value", "0.6958"), Code.OUT_OF_BOUNDS, "value"),
    (change_fact("bandwidth", "value", "695800"), Code.OUT_OF_BOUNDS, "value"),
    (change_fact("bandwidth", "value", "nan"), Code.OUT_OF_BOUNDS, "value"),
    (change_fact("peak_bf16", "value", "-1"), Code.OUT_OF_BOUNDS, "value"),
    (change_fact("power_limit", "value", "300000"), Code.OUT_OF_BOUNDS, "value"),
    (change_fact("memory_total", "value", "49153"), Code.OUT_OF_BOUNDS, "value"),  # above the GiB of the label
    (change_fact("memory_total", "value", "23034"), Code.OUT_OF_BOUNDS, "value"),  # another card's
    (change("formats.csv", "bits_per_weight", "0.5"), Code.OUT_OF_BOUNDS, "formats.csv:2"),
    (change("formats.csv", "bits_per_weight", "33"), Code.OUT_OF_BOUNDS, "formats.csv:2"),
    (change("exchange_rates.csv", "per_base", "0"), Code.OUT_OF_BOUNDS, "exchange_rates.csv:2"),
    (change("exchange_rates.csv", "per_base", "-1.1"), Code.OUT_OF_BOUNDS, "exchange_rates.csv:2"),
    (change("exchange_rates.csv", "currency", "usd"), Code.BAD_VALUE, "exchange_rates.csv:2"),
    (change("memory_rules.csv", "fraction", "0.95"), Code.CONFLICT, "memory_rules.csv:2 fraction"),
    (change("memory_rules.csv", "fraction", "0.1"), Code.OUT_OF_BOUNDS, "memory_rules.csv:2 fraction"),
    (change("billing_rules.csv", "value", "800", rule_key="disk_price"), Code.OUT_OF_BOUNDS, "billing_rules.csv:2"),
    (change("billing_rules.csv", "value", "-1", rule_key="granularity_s"), Code.OUT_OF_BOUNDS, "billing_rules.csv:2"),
    (change("mig_profiles.csv", "max_instances", "8"), Code.OUT_OF_BOUNDS, "mig_profiles.csv:2"),
    (change("mig_profiles.csv", "sm_fraction", "2/7"), Code.CONFLICT, "mig_profiles.csv:2 sm_fraction"),  # 7 of them
    (change("mig_profiles.csv", "memory_label_gb", "10"), Code.CONFLICT, "mig_profiles.csv:2 memory_label_gb"),
    (change("mig_profiles.csv", "memory_label_gb", "20", profile="1g.20gb"), Code.CONFLICT, "mig_profiles.csv:2 max_instances"),
    (change("mig_profiles.csv", "sm_fraction", "a seventh"), Code.BAD_VALUE, "mig_profiles.csv:2"),
    # image_tokens
    (change("image_tokens.csv", "patch", ""), Code.MISSING_VALUE, "image_tokens.csv:2 patch"),
    (change("image_tokens.csv", "rule", "yes"), Code.UNKNOWN_NAME, "image_tokens.csv:2 rule"),
    (change("image_tokens.csv", "merge", "99"), Code.OUT_OF_BOUNDS, "image_tokens.csv:2 merge"),
    # pipelines
    (change("pipelines.csv", "id", "stabilityai/sdxl"), Code.UNKNOWN_NAME, "pipelines.csv:2 id"),
    (change("pipelines.csv", "vae", "gan"), Code.UNKNOWN_NAME, "pipelines.csv:2 vae"),
    (change("pipelines.csv", "vae_widens", "yes"), Code.UNKNOWN_NAME, "pipelines.csv:2 vae_widens"),
    (change("pipelines.csv", "text_params", "1e8"), Code.BAD_VALUE, "pipelines.csv:2 text_params"),
    (change("pipelines.csv", "vae_params", ""), Code.MISSING_VALUE, "pipelines.csv:2 vae_params"),
    (change("pipelines.csv", "vae_params", "83"), Code.OUT_OF_BOUNDS, "pipelines.csv:2 vae_params"),
    (change("denoisers.csv", "id", "stabilityai/sdxl"), Code.UNKNOWN_NAME, "pipelines.csv:2 id"),
    (change("denoisers.csv", "kind", "flux"), Code.CONFLICT, "denoisers.csv:2 widths"),
    # hosted prices
    (change("hosted_prices.csv", "input_per_million", ""), Code.MISSING_VALUE, "hosted_prices.csv:2 input_per_million"),
    (change("hosted_prices.csv", "output_per_million", "24 USD"), Code.BAD_VALUE, "hosted_prices.csv:2 output_per_million"),
    (change("hosted_prices.csv", "input_per_million", "1|5"), Code.BAD_VALUE, "hosted_prices.csv:2 input_per_million"),
    (change("hosted_prices.csv", "input_per_million", "80000"), Code.OUT_OF_BOUNDS, "hosted_prices.csv:2"),
    (change("hosted_prices.csv", "input_per_million", "0", output_per_million="0"), Code.OUT_OF_BOUNDS, "hosted_prices.csv:2"),
    (change("hosted_prices.csv", "currency", "RMB"), Code.UNKNOWN_NAME, "hosted_prices.csv:2 currency"),
    (change("hosted_prices.csv", "processing", "bach"), Code.UNKNOWN_NAME, "hosted_prices.csv:2 processing"),
    (change("hosted_prices.csv", "hours_utc", "9-17"), Code.BAD_VALUE, "hosted_prices.csv:2 hours_utc"),
    (change("hosted_prices.csv", "context_tokens", "0"), Code.BAD_VALUE, "hosted_prices.csv:2 context_tokens"),
    (change("hosted_prices.csv", "seen_at", ""), Code.MISSING_VALUE, "hosted_prices.csv:2 seen_at"),
    (repeat("hosted_prices.csv"), Code.DUPLICATE, "hosted_prices.csv"),
    # measurements
    (change_baseline("A40", "matmul_bf16", value="160"), Code.OUT_OF_BOUNDS, "value"),  # above 149.7 x 1.03
    (change_baseline("A40", "memory_read", value="696"), Code.OUT_OF_BOUNDS, "value"),  # above 695.8
    (change_baseline("A40", "memory_read", value="0"), Code.OUT_OF_BOUNDS, "value"),
    (change_baseline("A40", "memory_read", unit="MB/s"), Code.BAD_VALUE, "unit"),
    (change_baseline("A40", "memory_read", value="680 GB/s"), Code.BAD_VALUE, "value"),
    (change_baseline("A40", "memory_read", quantity="memory_reed"), Code.UNKNOWN_NAME, "quantity"),
    (change_baseline("A40", "memory_read", kind="fail threshold"), Code.UNKNOWN_NAME, "kind"),
    (change_baseline("A40", "memory_read", mark="outlier", note="x"), Code.UNKNOWN_NAME, "mark"),
    (change_baseline("A40", "memory_read", mark="suspect"), Code.MISSING_VALUE, "note"),
    (change_baseline("A40", "memory_read", accelerators=""), Code.MISSING_VALUE, "note"),
    (change_baseline("A40", "memory_read", accelerators="a41"), Code.UNKNOWN_NAME, "accelerators"),
    (change_baseline("A40", "memory_read", label=""), Code.MISSING_VALUE, "label"),
    (change_baseline("A40", "memory_read", gpus="two"), Code.BAD_VALUE, "gpus"),
    (change_baseline("A40", "memory_read", seen_at=""), Code.MISSING_VALUE, "seen_at"),
    (change_baseline("A40", "memory_read", source=""), Code.NO_SOURCE, "source"),
    (change_baseline("A40", "power_idle", value_to="20"), Code.OUT_OF_BOUNDS, "value_to"),  # a spread that ends below
    (change_baseline("A40", "power_target", value="310"), Code.OUT_OF_BOUNDS, "value"),
    (change_baseline("A40", "memory_total", value="49140"), Code.CONFLICT, "value"),
    (change_baseline("A40", "matmul_fp32", kind="floor"), Code.CONFLICT, "kind"),
    (change_baseline("A40", "matmul_bf16", mark="above_peak", note="x"), Code.CONFLICT, "mark"),  # it is not above
    (change_baseline("RTX 5090 32GB", "matmul_bf16", value="260"), Code.CONFLICT, "mark"),  # more than a clock explains
    (change_baseline("RTX 5090 32GB", "matmul_bf16", mark=""), Code.OUT_OF_BOUNDS, "value"),
    (change_baseline("Tesla P40 24GB", "matmul_fp16", value="12.2"), Code.OUT_OF_BOUNDS, "value"),  # above FP32
    (change_baseline("A40", "memory_total", mark="upcast", note="x", value="46069"), Code.CONFLICT, "value"),
    (change_baseline("H100-SXM5-80GB", "host_link", value="64"), Code.OUT_OF_BOUNDS, "value"),  # above PCIe 5.0 x16
    (change_baseline("H100-SXM5-80GB", "peer_one_way", value="460"), Code.OUT_OF_BOUNDS, "value"),
    (repeat("baselines.csv"), Code.DUPLICATE, "baselines.csv"),
    # the same row twice
    (repeat("accelerators.csv"), Code.DUPLICATE, "accelerators.csv"),
    (repeat("accelerator_facts.csv"), Code.DUPLICATE, "accelerator_facts.csv"),
    (repeat("models.csv"), Code.DUPLICATE, "models.csv"),
    (repeat("formats.csv"), Code.DUPLICATE, "formats.csv"),
    (repeat("billing_rules.csv"), Code.DUPLICATE, "billing_rules.csv"),
    (repeat("claims.csv"), Code.DUPLICATE, "claims.csv"),
    (change("providers.csv", "aliases", "gcp"), Code.DUPLICATE, "providers.csv:2 aliases"),
    # words that other files define
    (change_fact("bandwidth", "accelerator", "a41"), Code.UNKNOWN_NAME, "accelerator"),
    (change_fact("bandwidth", "quantity", "bandwith"), Code.UNKNOWN_NAME, "quantity"),
    (change_fact("bandwidth", "kind", "guessed"), Code.UNKNOWN_NAME, "kind"),
    (change("billing_rules.csv", "provider", "awss"), Code.UNKNOWN_NAME, "billing_rules.csv:2 provider"),
    (change("billing_rules.csv", "rule_key", "granularity"), Code.UNKNOWN_NAME, "billing_rules.csv:2 rule_key"),
    (change("billing_rules.csv", "confidence", "sure"), Code.UNKNOWN_NAME, "billing_rules.csv:2 confidence"),
    (change("mig_profiles.csv", "accelerators", "a100"), Code.UNKNOWN_NAME, "mig_profiles.csv:2 accelerators"),
    (change("memory_rules.csv", "siblings", "l40"), Code.UNKNOWN_NAME, "memory_rules.csv:2 siblings"),
    (change("claims.csv", "verdict", "maybe"), Code.UNKNOWN_NAME, "claims.csv:2 verdict"),
    (change("formats.csv", "computes_in", "fp7"), Code.BAD_VALUE, "formats.csv:2 computes_in"),
    # what is missing or cannot be read
    (change("accelerators.csv", "memory_sold_gb", ""), Code.MISSING_VALUE, "accelerators.csv:2 memory_sold_gb"),
    (change("accelerators.csv", "nvswitch", "yes"), Code.BAD_VALUE, "accelerators.csv:2 nvswitch"),
    (change("accelerators.csv", "compute_capability", "gfx90a"), Code.BAD_VALUE, "accelerators.csv:2 compute_capability"),
    (change_fact("bandwidth", "seen_at", ""), Code.MISSING_VALUE, "seen_at"),
    (change_fact("bandwidth", "seen_at", "30.11.2026"), Code.BAD_VALUE, "seen_at"),
    (change("claims.csv", "right_answer", ""), Code.MISSING_VALUE, "claims.csv:2 right_answer"),
    (lambda t, _e: t.pop("formats.csv"), Code.MISSING_VALUE, "formats.csv"),
    (lambda t, _e: [r.pop("unit") for r in t["accelerator_facts.csv"]], Code.UNKNOWN_KEY, "accelerator_facts.csv:2 unit"),
    # models
    (change("models.csv", "params_check", "6500000000"), Code.CONFLICT, "models.csv:2 params_check"),
    (change("models.csv", "encoder_layers", "6"), Code.MISSING_VALUE, "models.csv:2 decoder_layers"),
    (change("models.csv", "params_active", "7000000000000"), Code.CONFLICT, "models.csv:2 params_active"),
    (change("models.csv", "params_total", "6.7"), Code.OUT_OF_BOUNDS, "models.csv:2 params_total"),
    (change("models.csv", "head_dim", "4096"), Code.OUT_OF_BOUNDS, "models.csv:2 head_dim"),
    (change("models.csv", "kv_heads", "64"), Code.CONFLICT, "models.csv:2 kv_heads"),
    (change("models.csv", "id", "a,b"), Code.BAD_VALUE, "models.csv:2 id"),
    # models of images, rendering
    (change("denoisers.csv", "kind", "gan"), Code.UNKNOWN_NAME, "denoisers.csv:2 kind"),
    (change("denoisers.csv", "depths", "1|1"), Code.CONFLICT, "denoisers.csv:2 depths"),
    (change("denoisers.csv", "widths", "many"), Code.BAD_VALUE, "denoisers.csv:2 widths"),
    (change("denoisers.csv", "steps", "0"), Code.OUT_OF_BOUNDS, "denoisers.csv:2 steps"),
    (change("render_scores.csv", "accelerator", "rtx9090"), Code.UNKNOWN_NAME, "render_scores.csv:2 accelerator"),
    (change("render_scores.csv", "value", "0"), Code.OUT_OF_BOUNDS, "render_scores.csv:2 value"),
    (change("render_scores.csv", "results", "some"), Code.BAD_VALUE, "render_scores.csv:2 results"),
    # engines
    (engine("weight_formats", ["fp17"]), Code.UNKNOWN_NAME, "engines/vllm.toml weight_formats"),
    (engine("tasks", ["serve"]), Code.UNKNOWN_NAME, "engines/vllm.toml tasks"),
    (engine("vendors", ["Nvidia"]), Code.UNKNOWN_NAME, "engines/vllm.toml vendors"),
    (engine("parallel", ["experts"]), Code.UNKNOWN_NAME, "engines/vllm.toml parallel"),
    (engine("cache_types", [{"id": "fp8", "bits": 80}], section="serving"), Code.OUT_OF_BOUNDS, "serving.cache_types"),
    (engine("cache_types", [{"id": "fp8", "wide": 8}], section="serving"), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("zero_stages", [4]), Code.OUT_OF_BOUNDS, "engines/vllm.toml zero_stages"),
    (engine("zero_stages", ["2"]), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("source", ""), Code.NO_SOURCE, "engines/vllm.toml source"),
    (engine("source", "", section="serving"), Code.NO_SOURCE, "engines/vllm.toml serving.source"),
    (engine("memory_share", 92, section="serving"), Code.OUT_OF_BOUNDS, "engines/vllm.toml serving.memory_share"),
    (engine("share_of", "all", section="serving"), Code.UNKNOWN_NAME, "engines/vllm.toml serving.share_of"),
    (engine("prefill_flop", 62, section="speed"), Code.OUT_OF_BOUNDS, "engines/vllm.toml speed.prefill_flop"),
    (engine("graph_gib", [3, 2, 1], section="serving"), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("page_tokens", "16", section="serving"), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("page_tokens", True, section="serving"), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("pages", 16, section="serving"), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("host", "fast", section="speed"), Code.BAD_VALUE, "engines/vllm.toml"),
    (without("page_tokens", section="serving"), Code.BAD_VALUE, "engines/vllm.toml"),
    (without("speed"), Code.BAD_VALUE, "engines/vllm.toml"),
    (without("title"), Code.BAD_VALUE, "engines/vllm.toml"),
    (engine("loss", "none", section="training", name="engines/fsdp.toml"), Code.UNKNOWN_NAME, "engines/fsdp.toml training.loss"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "code", "where"), FAULTS, ids=[f"{i}-{c}-{w}" for i, (_, c, w) in enumerate(FAULTS)])
def test_a_planted_fault_is_seen(tables, engines, plant, code, where):
    some = {"hosted_prices.csv": 100}  # as good as all of its thousands
    tables = {name: [dict(row) for row in table[: some.get(name)]] for name, table in tables.items()}
    engines = copy.deepcopy(engines)
    plant(tables, engines)
    found = validate(tables, engines)
    assert [f for f in found if f.code is code and where in f.subject], found
    assert all(f.subject and f.action for f in found)


def test_a_message_names_the_key_of_an_engine_file(tables, engines):
    engines = copy.deepcopy(engines)
    engines["engines/vllm.toml"]["serving"]["pages"] = 16
    found = validate(tables, engines)
    assert "engines/vllm.toml.serving.pages" in found[0].observed
    assert "page_tokens" in found[0].observed


def run(folder):
    return subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)


def test_the_tool_passes_the_bundled_files():
    done = run(bundled.DATA)
    assert done.returncode == 0, done.stdout
    assert "no fault" in done.stdout


def test_the_tool_names_file_line_problem_and_next_step(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(bundled.DATA, data)
    formats = data / "formats.csv"
    formats.write_text(formats.read_text("utf-8").replace("fp32,FP32,32,", "fp32,FP32,320,"), "utf-8")
    (data / "engines" / "vllm.toml").write_text("id = ", "utf-8")
    done = run(data)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "formats.csv:2 bits_per_weight: out_of_bounds; found '320'; expected 1 to 32; next: check its unit" in lines
    assert any(line.startswith("engines/vllm.toml: bad_syntax") for line in lines)
