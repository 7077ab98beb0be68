"""Weights as kernels and loaders hold them: padded experts, experts stacked while loading, tables left behind."""

import pytest
from tests.memory.build import likely, measure

from rackrate.memory.weights import padded_experts, parameter_groups
from rackrate.workload.parse import parse
from rackrate.workload.request import Request

OSS, MIXTRAL = "openai/gpt-oss-20b", "mistralai/Mixtral-8x7B-v0.1"
EXPERTS = 24 * 32 * 3 * 2_880 * 2_880 + 24 * 32 * 2_880  # gate, up and down of every layer, and the routers


def work(book, model, **said):
    values = {"model": model, "task": "inference"} | {key.replace("__", "."): value for key, value in said.items()}
    found = parse(Request(values=values, origins={}), book)
    assert not isinstance(found, tuple), found
    return found.workload


def test_mxfp4_is_for_experts_alone(book):
    card = book.accelerators["h100-sxm5-80"]
    found = measure(work(book, OSS, engine="transformers"), card, book.engine("transformers"))
    groups = parameter_groups(book.model(OSS))
    assert groups.experts == EXPERTS
    beside = 2.0 * (book.model(OSS).params_total - EXPERTS)
    assert likely(found, "weights") == pytest.approx(EXPERTS * 4.25 / 8 + beside)
    # the published checkpoint has 13,761,264,768 bytes (model.safetensors.index.json, total_size)
    assert likely(found, "weights") == pytest.approx(13_761_264_768, rel=0.002)


def test_experts_are_padded_as_kernels_want_them(book):
    model = book.model(OSS)
    groups = parameter_groups(model)
    # hidden 2,880 -> 2,944 in and 3,072 out; 2 x 2,880 -> 5,888 out
    one = padded_experts(model, groups, 1, (128, 256))
    assert one.experts / groups.experts == pytest.approx((2_944 * 5_888 + 2_944 * 3_072) / (3 * 2_880**2))
    # half of 2,880 is 1,440 -> 1,472 on each card; 2 x 1,472 -> 3,072 out; 1,472 -> 1,536 in
    two = padded_experts(model, groups, 2, (128, 256))
    assert two.experts / groups.experts == pytest.approx((2_944 * 3_072 + 1_536 * 3_072) / (3 * 2_880 * 1_440))
    assert padded_experts(model, groups, 1, (1, 1)).experts == groups.experts


def test_sizes_that_fit_are_not_padded(book):
    model = book.model(MIXTRAL)
    groups = parameter_groups(model)
    assert padded_experts(model, groups, 1, (128, 256)) == groups


def test_autoawq_stacks_a_layers_experts_and_leaves_tables_behind(book):
    card = book.accelerators["a100-sxm4-80"]
    parts = {}
    for version in ("0.1.6", "0.2.0", "0.2.9"):
        engine = book.engine(f"autoawq=={version}")
        found = measure(
            work(book, MIXTRAL, engine=f"autoawq=={version}", precision="fp16", quantization="awq-int4"), card, engine
        )
        parts[version] = [p for p in found.components if p.name in {"rotary_tables", "loading_copies"}]
    tables = 32 * 4 * 32_768 * 128
    assert sum(p.bytes.likely == tables for p in parts["0.2.0"]) == 1
    assert not any(p.bytes.likely == tables for p in (*parts["0.1.6"], *parts["0.2.9"]))
    stacked = 2 * 4_096 * 14_336 * 8 * (4.16 / 8 + 0.5)
    assert [p.bytes.likely for p in parts["0.2.9"] if p.name == "loading_copies"] == pytest.approx([stacked], rel=1e-3)


def test_split_sums_grow_with_the_prompt(book):
    engine, card = book.engine("autoawq"), book.accelerators["a100-sxm4-80"]
    sizes = {
        "engine": "autoawq",
        "precision": "fp16",
        "quantization": "awq-int4",
        "serving__output_tokens": 16,
        "serving__concurrency": 1,
    }
    found = measure(work(book, MIXTRAL, serving__prompt_tokens=512, **sizes), card, engine)
    # 2 experts x gate and up of 14,336 x 8 partial sums and their sum, and 4 hidden states of 4,096; 2 B
    assert likely(found, "activations") == 512 * 2 * (2 * 2 * 14_336 * 9 + 4 * 4_096)


def test_gemma_3_keeps_stretched_tables(book):
    found = measure(work(book, "google/gemma-3-27b-it"), book.accelerators["h100-sxm5-80"], book.engine("vllm"))
    # 8 x 131,072 positions stretched and 131,072 of windows, 128 values, 2 B
    assert likely(found, "rotary_tables") == 2 * 9 * 131_072 * 128
