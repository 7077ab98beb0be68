"""Tensors by name: which part of a model each is, and how many parameters it stands for."""

import pytest

from rackrate.facts.architecture.tensors import Tensor, nearest_format, parameters, part_of, tally


def tensor(name, kind="BF16", shape=(8, 16), size=256):
    return Tensor(name=name, type=kind, shape=shape, size=size)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("transformer.wte.weight", "embedding"),
        ("token_embd.weight", "embedding"),
        ("shared.weight", "embedding"),
        ("backbone.embeddings.weight", "embedding"),
        ("language_model.model.embed_tokens.weight", "embedding"),
        ("lm_head.weight", "head"),
        ("output.weight", "head"),
        ("embed_out.weight", "head"),
        ("model.layers.3.mlp.up_proj.weight", "layers"),
        ("model.layers.4.mlp.up_proj.weight", "beyond"),
        ("blk.4.ffn_up.weight", "beyond"),
        ("mtp.layers.0.mlp.up_proj.weight", "beyond"),
        ("model.norm.weight", "layers"),
        ("output_norm.weight", "layers"),
        ("model.visual.blocks.30.mlp.fc1.weight", "vision"),
        ("vision_tower.encoder.layers.9.mlp.fc1.weight", "vision"),
        ("multi_modal_projector.linear_1.weight", "vision"),
        ("v.blk.0.attn_q.weight", "vision"),
    ],
)
def test_parts(name, part):
    assert part_of(name, layers=4, tied=False) == part


def test_a_tied_head_stays_on_disk():
    assert part_of("lm_head.weight", layers=4, tied=True) == "beyond"


@pytest.mark.parametrize(
    ("name", "kind", "shape", "bits", "expected"),
    [
        ("a.weight", "BF16", (8, 16), 4, 128),
        ("a.weight", "F8_E4M3", (8, 16), 8, 128),
        ("a.qweight", "I32", (8, 16), 4, 1024),
        ("a.qweight", "I32", (8, 16), 8, 512),
        ("a.weight_packed", "I32", (8, 16), 4, 1024),
        ("a.weight", "U8", (8, 16), 4, 256),
        ("a.weight", "I8", (8, 16), 8, 128),
        ("mlp.experts.gate_up_proj_blocks", "U8", (2, 4, 8, 16), 4, 2048),
        ("mlp.experts.gate_up_proj_scales", "U8", (2, 4, 8), 4, 0),
        ("mlp.experts.gate_up_proj_bias", "BF16", (2, 8), 4, 16),
        ("a.qzeros", "I32", (8, 16), 4, 0),
        ("a.scales", "F16", (8, 16), 4, 0),
        ("a.g_idx", "I32", (16,), 4, 0),
        ("a.weight_scale_inv", "F32", (1, 1), 8, 0),
        ("a.weight.absmax", "F32", (8,), 4, 0),
        ("a.weight.quant_state.bitsandbytes__nf4", "U8", (90,), 4, 0),
        ("a.weight.nested_absmax", "F32", (8,), 4, 0),
        ("h.0.attn.bias", "F32", (1, 1, 1024, 1024), 4, 0),
        ("h.0.attn.c_attn.bias", "F32", (2304,), 4, 2304),
        ("rotary_emb.inv_freq", "F32", (64,), 4, 0),
        ("mlp.gate.e_score_correction_bias", "F32", (256,), 4, 0),
        ("logit_scale", "F32", (), 4, 1),
        ("altup.correct_output_scale", "BF16", (96,), 4, 96),
        ("mlp.router.per_expert_scale", "BF16", (4,), 4, 4),
    ],
)
def test_parameters(name, kind, shape, bits, expected):
    assert parameters(tensor(name, kind, shape), bits=bits) == expected


def test_a_tally_keeps_parts_types_and_experts_apart():
    found = tally(
        [
            tensor("model.embed_tokens.weight"),
            tensor("model.layers.0.mlp.experts.3.up_proj.weight", "F8_E4M3", (8, 16), 128),
            tensor("model.layers.0.mlp.shared_experts.up_proj.weight"),
            tensor("model.layers.1.mlp.up_proj.weight"),
        ],
        layers=1,
        tied=False,
        form="fp8",
    )
    assert (found.parameters, found.experts) == (3 * 128, 128)
    assert dict(found.stored.by_type) == {"BF16": 512, "F8_E4M3": 128}
    assert (found.stored.embedding_bytes, found.stored.layer_bytes, found.stored.beyond_bytes) == (256, 384, 256)
    assert found.stored.loaded_bytes == 640


@pytest.mark.parametrize(
    ("bits", "gguf", "expected"), [(4.86, True, "gguf-q4_k_m"), (2.1, True, "gguf-iq2_xxs"), (16.0, False, "bf16")]
)
def test_the_nearest_format(bits, gguf, expected, book):
    assert nearest_format(bits, book.formats, gguf=gguf) == expected
