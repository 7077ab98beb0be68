"""Models from configurations: counts against the classes themselves and against every bundled row."""

import csv
import json
from pathlib import Path

import pytest
from tests.facts.row_configs import config_of

from rackrate.facts.architecture.account import FIELDS, Account, add
from rackrate.facts.architecture.quantization import native_format
from rackrate.facts.architecture.read import model_of, pipeline_of
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.model import Model
from rackrate.memory.weights import parameter_groups
from rackrate.problems import Code, Severity

HERE = Path(__file__).parent
CLASSES = json.loads((HERE / "class_counts.json").read_text("utf-8"))
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
}


def listed(name):
    return {row["id"]: row for row in csv.DictReader((HERE / name).read_text("utf-8").splitlines())}


NO_FORMULA, INEXACT = listed("no_formula.csv"), listed("inexact.csv")


def read(config):
    found = model_of(config, id="test")
    assert isinstance(found, Model), found
    return found


def problems(config):
    found = model_of(config, id="test")
    assert isinstance(found, tuple)
    return found


# ---------------------------------------------------------------- counts


def class_names():
    return [f"{number}-{entry['class']}" for number, entry in enumerate(CLASSES)]


@pytest.mark.parametrize("entry", CLASSES, ids=class_names())
def test_a_count_is_that_of_the_class(entry):
    """tools/count_classes.py built the class of each configuration and counted its parameters."""
    found = read(entry["config"])
    assert found.params_total == entry["parameters"]
    assert sum(count for _, count in found.params_by_group) == found.params_total
    assert 0 < found.params_active <= found.params_total
    assert not found.remarks


def test_the_counted_classes_are_of_many_kinds():
    types = {entry["config"].get("model_type", entry["config"].get("_class_name")) for entry in CLASSES}
    assert len(types) > 100


def test_every_bundled_row_has_a_formula_or_says_why_not(tables):
    rows = {row["id"]: row for row in tables["models.csv"]}
    without = {name for name, row in rows.items() if config_of(row) is None}
    assert without == set(NO_FORMULA) == {name for name, row in rows.items() if not row["params_check"]}
    assert set(INEXACT) <= set(rows) - without
    assert all(row["reason"] for row in (*NO_FORMULA.values(), *INEXACT.values()))


def test_every_bundled_row_is_computed_from_its_own_sizes(tables):
    exact = 0
    for row in tables["models.csv"]:
        config = config_of(row)
        if config is None:
            continue
        found, total = read(config), int(row["params_total"])
        expected = int(INEXACT[row["id"]]["difference"]) if row["id"] in INEXACT else 0
        assert found.params_total - total == expected, row["id"]
        assert abs(expected) <= 0.002 * total, row["id"]
        exact += expected == 0
        assert found.params_total == int(row["params_check"]), row["id"]
    assert exact == len(tables["models.csv"]) - len(NO_FORMULA) - len(INEXACT)


def test_what_one_token_meets_agrees_with_the_rows(tables):
    """Within 0.02 %, vision towers counted; one row leaves the indexers out."""
    apart = {"mistralai/Mistral-Large-4-1T-A52B"}
    for row in tables["models.csv"]:
        config = config_of(row)
        if config is None or row["id"] in apart:
            continue
        assert read(config).params_active == pytest.approx(int(row["params_active"]), rel=2e-4), row["id"]


SHAPES = {
    "layers_full": "attn_layers_full",
    "layers_windowed": "attn_layers_windowed",
    "layers_linear": "layers_linear_or_ssm",
    "window": "window",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "experts_per_token": "experts_per_token",
    "mla_kv_lora_rank": "mla_kv_lora_rank",
    "mla_qk_rope_head_dim": "mla_qk_rope_head_dim",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "encoder_positions": "encoder_positions",
    "mel_bins": "mel_bins",
}


def test_what_the_cache_follows_from_agrees_with_the_rows(tables):
    """The pattern of Step-3.7's layers is not in its row: the number of sliding layers may differ by one."""
    for row in tables["models.csv"]:
        config = config_of(row)
        if config is None or row["id"] == "stepfun-ai/Step-3.7-Flash" or row["modality"] == "text-to-image":
            continue
        found = read(config)
        for name, column in SHAPES.items():
            if row[column]:
                assert str(getattr(found, name) or 0) == row[column], (row["id"], name)


# ---------------------------------------------------------------- what the configuration says


def test_a_plain_configuration():
    found = read({**LLAMA, "torch_dtype": "float16", "max_position_embeddings": 4096})
    assert found.params_total == 6_738_415_616
    assert (found.id, found.family, found.native_dtype) == ("test", "llama", "float16")
    assert (found.kv_heads, found.head_dim, found.max_context, found.tie_embeddings) == (32, 128, 4096, False)
    assert found.attention == "full"
    assert dict(found.params_by_group)["mlp"] == 32 * 3 * 4096 * 11008


def test_memory_takes_the_counted_groups():
    groups = parameter_groups(read(LLAMA))
    assert (groups.attention, groups.norms, groups.other) == (32 * 4 * 4096 * 4096, 65 * 4096, 0)
    hybrid = read(next(e["config"] for e in CLASSES if e["config"].get("model_type") == "qwen3_next"))
    groups = parameter_groups(hybrid)
    assert groups.other == dict(hybrid.params_by_group)["mixers"]
    whole = groups.embedding + groups.head + groups.norms + groups.layer_matrices
    assert whole == hybrid.params_total


def test_a_missing_size_is_named_with_what_it_means_and_all_at_once():
    found = problems({"model_type": "llama", "hidden_size": 4096})
    assert {f.subject for f in found} == {
        f"config.json {key}" for key in ("num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
    }
    assert all(f.code is Code.MISSING_VALUE and f.expected and f.action for f in found)


@pytest.mark.parametrize("value", ["4096", -1, 0, 1.5, True, [1], {}, 10**400, float("nan"), float("inf"), 2**60])
def test_a_size_that_makes_no_sense_is_named(value):
    (found,) = problems({**LLAMA, "hidden_size": value})
    assert found.code is Code.BAD_VALUE
    assert found.subject == "config.json hidden_size"
    assert "whole number" in found.expected


def test_sizes_as_json_may_write_them():
    assert read({**LLAMA, "hidden_size": 4096.0}) == read(LLAMA)


@pytest.mark.parametrize("config", [None, [], "llama", 3, {}, {"model_type": ""}, {"model_type": 5}])
def test_what_is_no_configuration_is_refused(config):
    (found,) = problems(config)
    assert found.expected
    assert found.action


def test_an_unknown_type_is_read_by_its_keys_with_a_remark():
    dense = read({**LLAMA, "model_type": "llama9"})
    assert dense.params_total == read(LLAMA).params_total
    mixed = read({**LLAMA, "model_type": "moe9", "num_experts": 8, "num_experts_per_tok": 2})
    assert mixed.experts == 8
    for found, read_as in ((dense, "Llama"), (mixed, "Mixtral")):
        (remark,) = found.remarks
        assert remark.severity is Severity.WARNING
        assert remark.code is Code.MODEL_INEXACT
        assert read_as in remark.observed


def test_more_experts_for_a_token_than_there_are_is_wrong():
    config = {**LLAMA, "model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3}
    assert problems(config)[0].subject == "config.json num_experts_per_tok"


def test_a_list_of_layers_that_is_too_short_is_wrong():
    assert problems({**LLAMA, "model_type": "qwen3", "layer_types": ["full_attention"]})[0].subject.endswith(
        "layer_types"
    )


def test_layer_types_that_are_not_known_are_said():
    found = read({**LLAMA, "model_type": "qwen3", "layer_types": ["quantum_attention"] * 32})
    assert "quantum_attention" in found.remarks[0].observed
    assert found.layers_full == 32


@pytest.mark.parametrize(
    ("extra", "full", "windowed", "window"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 0, 32, 4096),
        ({"model_type": "mistral", "sliding_window": None}, 32, 0, None),
        ({"model_type": "mistral"}, 0, 32, 4096),
        ({"model_type": "gemma2"}, 16, 16, 4096),
        ({"model_type": "gemma3_text", "sliding_window": 512}, 5, 27, 512),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 4}, 8, 24, 512),
        ({"model_type": "qwen2", "sliding_window": 512, "use_sliding_window": False}, 32, 0, None),
        (
            {"model_type": "qwen2", "sliding_window": 512, "use_sliding_window": True, "max_window_layers": 20},
            20,
            12,
            512,
        ),
        ({"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LLLG"}, 8, 24, 64),
        ({"model_type": "olmo3", "layer_types": ["full_attention", "sliding_attention"] * 16}, 16, 16, 4096),
    ],
)
def test_windows(extra, full, windowed, window):
    found = read({**LLAMA, **extra})
    assert (found.layers_full, found.layers_windowed, found.window) == (full, windowed, window)


def test_a_text_model_inside_another_takes_the_defaults_of_its_class_and_says_so():
    """The configuration of llava-hf/llava-1.5-7b-hf leaves out every size of its Llama but the vocabulary."""
    vision = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    tower = {"model_type": "clip_vision_model", **vision, "image_size": 336, "patch_size": 14}
    found = read(
        {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}, "vision_config": tower}
    )
    assert found.params_total == 7_063_427_072
    assert "hidden_size 4096" in found.remarks[0].observed
    assert found.modality == "image+text"


def test_the_outer_word_on_tied_embeddings_goes_before_the_inner():
    inner = {**LLAMA, "tie_word_embeddings": True}
    for outer, tied in (({}, True), ({"tie_word_embeddings": False}, False), ({"tie_word_embeddings": True}, True)):
        assert read({"model_type": "llava", "text_config": inner, **outer}).tie_embeddings is tied


def test_sizes_of_single_layers_as_newer_configurations_write_them():
    """transformers 5.24 saves Gemma 4's wider heads as ``per_layer_config`` instead of ``global_head_dim``."""
    config = next(e["config"] for e in CLASSES if e["config"].get("num_global_key_value_heads") == 1)
    newer = {key: value for key, value in config.items() if not key.startswith(("global_", "num_global_"))}
    newer["per_layer_config"] = {"5": {"head_dim": 32, "num_key_value_heads": 1}}
    assert read(newer).params_total == read(config).params_total


def test_a_tower_that_is_not_known_is_left_out_and_said():
    text = {**LLAMA, "model_type": "llama"}
    found = read({"model_type": "newvl", "text_config": text, "vision_config": {"hidden_size": 64}})
    assert found.params_total == read(LLAMA).params_total
    assert "tower" in found.remarks[0].observed
    assert "text tower only" in found.notes


def test_a_fixed_state_is_counted():
    delta = next(e["config"] for e in CLASSES if e["config"].get("model_type") == "qwen3_5_text")
    state = 4 * 16 * 24 + (2 * 2 * 16 + 4 * 24) * 3
    assert read(delta).linear_state_values == state
    assert read(LLAMA).linear_state_values is None


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "bfloat16"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "gptq", "bits": 4}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 8}, "gptq-int8"),
        ({"quant_method": "gptq", "bits": 3}, "bfloat16"),
        ({"quant_method": "awq", "bits": 4}, "awq-int4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4-dq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}}}, "gptq-int4"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8}}},
            },
            "fp8",
        ),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8-weight-only"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}},
            },
            "int8-w8a8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"format": "mxfp4-pack-quantized", "weights": {"num_bits": 4, "type": "float"}}},
            },
            "mxfp4",
        ),
        ({"quant_method": "of tomorrow"}, "bfloat16"),
    ],
)  # fmt: skip
def test_native_formats(settings, expected, book):
    config = {**LLAMA, "torch_dtype": "bfloat16", **({"quantization_config": settings} if settings else {})}
    assert read(config).native_dtype == expected
    assert expected in book.formats or expected == "bfloat16"
    nested = {"text_config": config}
    assert native_format(Reader(nested, "x")) == expected


# ---------------------------------------------------------------- pipelines


def test_a_pipeline_is_the_sum_of_its_networks():
    index = {
        "_class_name": "StableDiffusionPipeline",
        "scheduler": ["diffusers", "PNDMScheduler"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
    }
    found = pipeline_of(index, {"unet": 859_520_964, "vae": 83_653_863}, {}, id="sd")
    assert isinstance(found, Model)
    assert found.params_total == 943_174_827
    assert found.params_by_group == (("unet", 859_520_964), ("vae", 83_653_863))
    assert not found.generates_text


def test_a_part_of_a_pipeline_that_is_not_counted_names_the_files_that_would_tell():
    index = {"_class_name": "P", "unet": ["diffusers", "X"], "vae": ["diffusers", "Y"]}
    (found,) = pipeline_of(index, {"unet": 5}, {}, id="p")
    assert found.subject == "model_index.json vae"
    assert "vae/config.json or vae/*.safetensors" in found.expected
    assert [f.subject for f in model_of(index, id="p")] == ["model_index.json unet", "model_index.json vae"]


# ---------------------------------------------------------------- the account


def test_accounts_add_up():
    parts = [Account(mlp=3, idle=1)] * 4 + [Account(attention=5)]
    assert add(parts) == Account(mlp=12, idle=4, attention=5)
    assert add(parts).total == 17
    assert add(parts).active == 13
    assert add([]) == Account()
    assert FIELDS[-1] == "idle"
