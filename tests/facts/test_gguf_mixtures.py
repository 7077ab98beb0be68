"""GGUF file types: the rules by which llama.cpp mixes block types, the bundled bits, and published file sizes.

Rules: ggml-org/llama.cpp src/llama-quant.cpp, llama_tensor_get_type; blocks: ggml/src/ggml-common.h.
"""

import pytest

from rackrate.facts import bundled
from rackrate.facts.architecture.gguf import BLOCKS
from rackrate.workload.decide_use import download_bytes
from rackrate.workload.workload import Task

BOOK = bundled.load()
LLAMA = "meta-llama/Meta-Llama-3.1-8B"
HIDDEN, INNER, LAYERS, KEYS = 4096, 14336, 32, 1024
"""The shape of Llama-3.1-8B, which has four query heads for each key head."""

LOWEST = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
BASES = {"Q2_K_S": "Q2_K", "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K"}
BASES |= {"Q5_K_S": "Q5_K", "Q5_K_M": "Q5_K", "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S", "IQ3_M": "IQ3_S"}

PUBLISHED = {
    "IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403, "IQ2_M": 2.9294,
    "Q2_K_S": 2.9697, "Q2_K": 3.1593, "IQ3_XXS": 3.2548, "IQ3_XS": 3.4977, "IQ3_S": 3.6606, "IQ3_M": 3.7628,
    "Q3_K_S": 3.6429, "Q3_K_M": 3.9960, "Q3_K_L": 4.2979, "IQ4_XS": 4.4597, "IQ4_NL": 4.6818, "Q4_K_S": 4.6672,
    "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036, "Q6_K": 6.5633, "Q8_0": 8.5008,
}  # fmt: skip
"""Bits a weight of the files of Llama-3.1-8B (ggml-org/llama.cpp tools/quantize/README.md)."""


def bits(kind):
    values, size = BLOCKS[kind]
    return 8 * size / values


def often(layer):
    """Layers that the medium types give more bits: the first and last eighth, and every third between."""
    eighth = LAYERS // 8
    return layer < eighth or layer >= 7 * eighth or (layer - eighth) % 3 == 2


def value_type(name, base, layer):
    if name in LOWEST or name in {"Q2_K", "Q2_K_S", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M"}:
        return "Q4_K"
    if name in {"IQ4_NL", "IQ4_XS", "Q3_K_L"}:
        return "Q5_K"
    if name == "Q3_K_M":
        return "Q5_K" if layer < 2 else "Q4_K"
    if name in {"Q4_K_M", "Q5_K_M"} and often(layer):
        return "Q6_K"
    return "Q5_K" if name == "Q4_K_S" and layer < 4 else base


def down_type(name, base, layer):
    first = layer < LAYERS // 8
    if name in LOWEST and first:
        return "IQ3_S" if name in {"IQ2_S", "IQ2_M"} else "Q2_K"
    if name in {"Q2_K", "Q3_K_L"}:
        return {"Q2_K": "Q3_K", "Q3_K_L": "Q5_K"}[name]
    if name == "Q3_K_M":
        return "Q5_K" if layer < LAYERS // 16 else "Q4_K"
    if name in {"Q4_K_M", "Q5_K_M"} and often(layer):
        return "Q6_K"
    begun = {"Q2_K_S": "Q4_K", "IQ3_M": "Q4_K", "Q4_K_S": "Q5_K", "IQ4_NL": "Q5_K", "IQ4_XS": "Q5_K"}
    return begun.get(name, base) if first else base


def output_type(name, base):
    """Of the projection behind attention."""
    changed = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
    changed |= {"IQ1_S": "IQ2_XXS", "IQ1_M": "IQ2_XXS", "IQ2_S": "IQ3_S", "IQ2_M": "IQ3_S"}
    return changed.get(name, base)


def layer_bits(name):
    """Mean bits of the matrices of all layers."""
    base, whole, size = BASES.get(name, name), 0.0, 0
    asking = {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(name, base)
    for layer in range(LAYERS):
        middle = name == "IQ3_XS" and LAYERS // 8 <= layer < 7 * LAYERS // 8
        block = "IQ3_XXS" if middle else base
        for kind, count in (
            (asking, HIDDEN * (HIDDEN + KEYS)),
            (value_type(name, base, layer), HIDDEN * KEYS),
            (output_type(name, base), HIDDEN * HIDDEN),
            (block, 2 * HIDDEN * INNER),
            (down_type(name, base, layer), HIDDEN * INNER),
        ):
            whole, size = whole + bits(kind) * count, size + count
    return whole / size


@pytest.mark.parametrize("name", PUBLISHED)
def test_layers_follow_the_rules(name):
    assert BOOK.formats[f"gguf-{name.lower()}"].bits_per_weight == pytest.approx(layer_bits(name), rel=1e-5)


@pytest.mark.parametrize("name", PUBLISHED)
def test_files_are_as_large_as_published(name):
    """Within the norms, which stay in 32 bits: 0.03 % of a file."""
    model = BOOK.model(LLAMA)
    found = 8 * download_bytes(model, BOOK.formats[f"gguf-{name.lower()}"], Task.INFERENCE) / model.params_total
    assert found == pytest.approx(PUBLISHED[name], rel=6e-4)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q6_K", "Q8_0", "TQ1_0", "TQ2_0"])
def test_types_of_one_block_are_their_block(name):
    assert BOOK.formats[f"gguf-{name.lower()}"].bits_per_weight == pytest.approx(bits(name), rel=1e-5)


def test_another_size_of_model():
    """The published Q4_K_M file of Llama-3.3-70B has 42.52 GB."""
    size = download_bytes(BOOK.model("meta-llama/Meta-Llama-3.1-70B"), BOOK.formats["gguf-q4_k_m"], Task.INFERENCE)
    assert size == pytest.approx(42.52e9, rel=1e-3)


def test_llama_cpp_loads_every_type():
    known = {name for name in BOOK.formats if name.startswith("gguf-")}
    assert known <= BOOK.engine("llama.cpp").weight_formats
    assert len(known) == len(PUBLISHED) + 6
