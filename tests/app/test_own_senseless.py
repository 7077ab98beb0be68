"""Own engines, models and billing rules with senseless numbers: each is told, with its key, and no answer breaks."""

import contextlib
from datetime import date

import pytest
from tests.app.own import RULES, offer

from rackrate import api
from rackrate.facts import bundled
from rackrate.facts.validate_engines import BOUNDS
from rackrate.facts.validate_models import WHOLE

AT = date(2026, 11, 30)
SENSELESS = ("nan", "inf", "-inf", "-1", "0", "1e-300", "1e300", "1_000", "²", "٣", "half")

MODEL = {
    "id": "ours/x",
    "params_total": "6738415616",
    "hidden_size": "4096",
    "layers": "32",
    "attention_heads": "32",
    "kv_heads": "32",
    "head_dim": "128",
    "intermediate_size": "11008",
    "vocab_size": "32000",
    "max_context": "4096",
    "attn_layers_full": "28",
    "attn_layers_windowed": "4",
    "layers_linear_or_ssm": "0",
    "window": "1024",
    "tie_embeddings": "false",
    "mlp_gated": "true",
}
MIXTURE = MODEL | {
    "params_total": "46702792704",
    "kv_heads": "8",
    "intermediate_size": "14336",
    "experts": "8",
    "experts_per_token": "2",
    "moe_intermediate_size": "14336",
    "shared_experts": "0",
    "dense_layers_first": "0",
}
MAY_BE_ZERO = {
    "attn_layers_full",
    "attn_layers_windowed",
    "layers_linear_or_ssm",
    "shared_experts",
    "dense_layers_first",
}
JOBS = (
    {"model": "ours/x", "task": "inference", "serving": {"prompt_tokens": 512, "output_tokens": 128, "concurrency": 4}},
    {"model": "ours/x", "task": "lora", "training": {"tokens": "1M"}},
)


def asked(job, **settings):
    """``plan`` and ``fit`` for a job: an answer or a refusal in words, never anything else."""
    for verb in (api.plan, api.fit):
        with contextlib.suppress(api.Refused):  # a refusal is in words; anything else fails the test
            assert verb(job, {"limits.gpus": ["a40"], **settings}, at=AT).schema


def model_file(cells):
    return f"{','.join(cells)}\n{','.join(cells.values())}\n"


def test_the_models_of_this_file_are_good(own):
    for model in (MODEL, MIXTURE):
        own({"models.csv": model_file(model), "engines/mine.toml": engine_text("vllm", "", "")})
        assert api.check_facts(at=AT).problems == []
        for job in JOBS:
            assert api.fit(job, {"limits.gpus": ["a40"]}, at=AT).phases
            assert api.plan(job, limit=1, at=AT).plans
        assert api.plan(JOBS[0], {"engine": "mine"}, limit=1, at=AT).plans
        assert api.plan(JOBS[1] | {"use": {"disk": "200 GB", "data_out": "50 GB"}}, limit=1, at=AT).plans


@pytest.mark.parametrize("column", [column for column in MIXTURE if column != "id"])
def test_a_senseless_size_of_an_own_model(own, column):
    """A model for each value, in one file: each is told, and asking for one of them breaks nothing."""
    base = MODEL if column in MODEL else MIXTURE
    models = [base | {column: value, "id": f"ours/{number}"} for number, value in enumerate(SENSELESS)]
    own({"models.csv": "\n".join([",".join(base), *(",".join(model.values()) for model in models)])})
    told = {p.subject for p in api.check_facts(at=AT).problems}
    for line, value in enumerate(SENSELESS, start=2):
        fine = value == "0" and column in MAY_BE_ZERO
        assert (f"models.csv:{line} {column}" in told) is not fine, (value, told)
    asked(JOBS[0] | {"model": f"ours/{SENSELESS.index('0')}"})


NUMBERS = {
    "serving": ("memory_share", "page_tokens", "default_sequences", "batched_tokens", "mla_cache_padding"),
    "speed": ("launch_us_per_layer", "decode_bandwidth", "cache_bandwidth", "prefill_flop", "train_flop",
              "quantised_kernel", "spread"),
    "training": ("adapter_bytes",),
}  # fmt: skip
MAY_BE_NOTHING = {"launch_us_per_layer", "train_flop", "spread"}
IN_TOML = ("nan", "inf", "-inf", "-1", "0", "1e-300", "1e300", "99999999999999999999", "true", '"half"', "[]")


def engine_text(name, key, value):
    text = (bundled.DATA / "engines" / f"{name}.toml").read_text("utf-8").replace(f'id = "{name}"', 'id = "mine"')
    lines = [f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in text.splitlines()]
    return "\n".join(lines)


@pytest.mark.parametrize(("section", "key"), [(section, key) for section, keys in NUMBERS.items() for key in keys])
def test_a_senseless_number_of_an_own_engine(own, section, key):
    name, job = ("vllm", JOBS[0]) if section == "serving" else ("peft-trl", JOBS[1])
    for value in IN_TOML:
        own({"engines/mine.toml": engine_text(name, key, value), "models.csv": model_file(MODEL)})
        problems = api.check_facts(at=AT).problems
        fine = key in MAY_BE_NOTHING and value in {"0", "1e-300"}
        assert fine or any(key in f"{p.subject} {p.observed}" for p in problems), (value, problems)
    asked(job, engine="mine")


BILLS = {
    "granularity_s": ("s", ("0", "-60", "nan", "inf", "1e-300", "1e300", "hourly", "٦٠")),
    "minimum_charge_s": ("s", ("-60", "nan", "inf", "1e300", "an hour")),
    "disk_price": ("USD/GB-month", ("-0.1", "nan", "inf", "1e300", "NaN", "-Infinity")),
    "ip_price": ("USD/h", ("-0.1", "nan", "inf", "1e300")),
    "one_time_fee": ("USD", ("-5", "nan", "inf", "1e300")),
    "free_disk_gb": ("GB", ("-5", "nan", "inf", "1e300")),
    "egress_free_gb": ("GB/month", ("-5", "nan", "inf", "1e300")),
    "stopped_disk_multiplier": ("x", ("-2", "nan", "inf", "1e300")),
    "egress_price_tiers": ("upper GB:USD/GB", (
        "nan", "-1", "inf", "10240:nan|inf:0.05", "nan:0.1|inf:0.05", "10240:-1|inf:0.05", "10240:0.09",
        "51200:0.1|10240:0.09|inf:0.05", "10240:0.1|10240:0.09|inf:0.05", "10240:0.09|inf:inf", "0:0.1|inf:0.05",
    )),
}  # fmt: skip


@pytest.mark.parametrize("key", BILLS)
def test_a_senseless_value_of_an_own_rule(own, key):
    unit, values = BILLS[key]
    state = "start" if key == "one_time_fee" else "any"
    rules = [f"mybox,{key},{value},{unit},{state},2026-11-01" for value in values]
    own(
        {
            "billing_rules.csv": "\n".join([RULES, *rules]),
            "offers.csv": offer(card="a40"),
            "models.csv": model_file(MODEL),
        }
    )
    told = [p.subject for p in api.check_facts(at=AT).problems]
    assert told == [f"billing_rules.csv:{line} value" for line in range(2, len(values) + 2)], told
    asked(JOBS[1] | {"use": {"disk": "200 GB", "data_out": "50 GB"}})


@pytest.mark.parametrize("unit", ["", "USD", "USD/GB", "USD/GB-mnth", "UDS/GB-month", "dollars/GB-month"])
def test_a_price_whose_unit_cannot_be_read(own, unit):
    own({"billing_rules.csv": f"{RULES}\nmybox,disk_price,0.1,{unit},any,2026-11-01\n", "offers.csv": offer()})
    assert {p.subject for p in api.check_facts(at=AT).problems} == {"billing_rules.csv:2 unit"}


def test_two_own_engines_of_one_id_are_told(own):
    text = engine_text("vllm", "title", '"Mine"')
    own({"engines/a.toml": text, "engines/b.toml": text})
    assert [p.subject for p in api.check_facts(at=AT).problems] == ["engines/b.toml id"]


# ---------------------------------------------------------------- what is let through is computed with


@pytest.mark.parametrize("column", WHOLE)
def test_the_edges_of_an_own_model_break_no_answer(own, column):
    """A value that no rule refuses is odd at most: an answer, or a refusal in words."""
    base = MODEL if column in MODEL else MIXTURE
    for value in WHOLE[column]:
        own(
            {
                "models.csv": model_file(
                    {k: v for k, v in base.items() if k != "intermediate_size"} | {column: str(value)}
                )
            }
        )
        for job in JOBS:
            asked(job)


@pytest.mark.parametrize(("section", "key"), [(section, key) for section, keys in BOUNDS.items() for key in keys])
def test_the_edges_of_an_own_engine_break_no_answer(own, section, key):
    name, job = ("vllm", JOBS[0]) if section == "serving" else ("peft-trl", JOBS[1])
    written = {
        "launch_s_per_layer": "launch_us_per_layer",
        "graph_bytes": "graph_gib",
        "non_torch_bytes": "non_torch_gib",
    }
    for bound in BOUNDS[section][key]:
        scale = {"launch_s_per_layer": 1e6, "graph_bytes": 2**-30, "non_torch_bytes": 2**-30}.get(key, 1)
        value = f"{bound * scale:g}" if not isinstance(bound, int) or scale != 1 else str(bound)
        said = f"[{value}, {value}, {value}]" if key in SPANS else value
        own({"engines/mine.toml": engine_text(name, written.get(key, key), said), "models.csv": model_file(MODEL)})
        assert api.check_facts(at=AT).problems == [], (key, said)
        asked(job, engine="mine")


SPANS = {"graph_bytes", "non_torch_bytes", "reserved_over_allocated"}
