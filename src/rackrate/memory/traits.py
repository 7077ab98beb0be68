"""Traits: in what the layers of model families differ, as far as memory can tell."""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.weights import is_encoder, is_gated

PARALLEL = frozenset({"Phi", "StableLM", "GPT-NeoX", "Pythia", "Falcon", "GPT-J"})
"""Ungated families whose two blocks read one hidden state (litgpt/config.py parallel_residual)."""

ONE_NORM = frozenset({"Phi", "GPT-J"})
"""Those of them in which both read the output of one norm (litgpt/config.py shared_attention_norm)."""

HEAD_NORMS = frozenset({"Qwen3", "Qwen3 MoE", "Gemma 3", "OLMo 2", "OLMo 3"})
"""Families that normalise queries and keys (transformers modeling_qwen3.py q_norm, k_norm)."""

FOUR_NORMS = frozenset({"Gemma 2", "Gemma 3"})
"""Families with a norm on each side of both blocks (transformers modeling_gemma2.py)."""

WIDE_NORMS = frozenset({"Gemma", "Gemma 2", "Gemma 3", "OLMo 2", "OLMo 3"})
"""Families whose norm multiplies its weight in FP32, so that a trained one keeps FP32 (modeling_gemma.py, olmo2)."""

LAYER_NORMS = frozenset({"StableLM 2"})
"""Gated families with LayerNorm (transformers modeling_stablelm.py)."""

RELU = frozenset({"OPT"})
"""Families whose activation keeps its output, which the next matrix keeps anyway (torch threshold_backward)."""

TANH_IN_PYTHON = frozenset({"GPT-2", "Phi", "GPT-J", "GPT-Neo"})
"""Families whose GELU transformers writes out in Python (activations.py NewGELUActivation): three more widths."""

FUSED_IN_HUB = frozenset({"Pythia", "GPT-NeoX", "Phi 3", "Phi 3.5", "Phi 4", "Falcon", "Baichuan", "Qwen"})
"""Families whose queries, keys and values come of one matrix in transformers: values are a view of its output."""

CAPPED_SCORES = frozenset({"Gemma 2"})
"""Families that cap attention scores with a hyperbolic tangent, so that the scores are made (arXiv 2408.00118)."""

BIASED_SCORES = frozenset({"T5", "Flan-T5", "t5", "mt5", "umt5"})
"""Encoder-decoders that add a bias for each head and pair of positions to their scores (arXiv 1910.10683)."""

FOUR, TWO = 4, 2


def has_layer_norm(model: Model) -> bool:
    """Whether norms are LayerNorm and not RMSNorm."""
    return not is_gated(model) or model.family in LAYER_NORMS


def is_parallel(model: Model) -> bool:
    """Whether attention and feed-forward block read the same hidden state."""
    return not is_gated(model) and model.family in PARALLEL


def shares_norm(model: Model) -> bool:
    """Whether one norm feeds attention and feed-forward block."""
    return is_parallel(model) and (model.family in ONE_NORM or model.kv_heads == 1)


def norm_inputs(model: Model) -> int:
    """Hidden states that the norms of a layer keep: one where both blocks read the same."""
    if model.family in FOUR_NORMS:
        return FOUR
    return 1 if is_parallel(model) else TWO


def norm_outputs(model: Model) -> int:
    """Outputs of norms that linear layers read."""
    return 1 if shares_norm(model) else TWO


def caps_scores(model: Model) -> bool:
    """Whether attention scores are capped, which plain fused kernels cannot do."""
    return model.family in CAPPED_SCORES


def biases_scores(model: Model) -> bool:
    """Whether each head has a bias for every pair of positions, which plain fused kernels do not make."""
    return model.family in BIASED_SCORES


NO_DROPOUT = frozenset({"Whisper", "whisper"})
"""Encoder-decoders that are trained without dropout (WhisperConfig: dropout 0.0)."""

POST_NORM = frozenset({"BART", "bart", "Marian", "marian"})
"""Encoder-decoders whose norms follow their blocks, so that none is left for the end (modeling_bart.py)."""

NORMED_EMBEDDINGS = frozenset({"BART", "bart", "mBART", "mbart"})
"""Encoder-decoders with a norm behind the embeddings of both sides (layernorm_embedding)."""

RELU_TWO_SIDED = frozenset({"NLLB", "m2m_100", "T5", "t5"})
"""Encoder-decoders whose activation is ReLU unless gated, as their configurations have it by default."""


def drops_out(model: Model) -> bool:
    """Whether hidden states of an encoder-decoder are dropped out in training, which keeps a byte of mask each."""
    return model.family not in NO_DROPOUT


def norms_first(model: Model) -> bool:
    """Whether norms of an encoder-decoder stand before its blocks, with one more at the end of each side."""
    return model.family not in POST_NORM


def norms_embeddings(model: Model) -> bool:
    """Whether a norm of an encoder-decoder follows its embeddings."""
    return model.family in NORMED_EMBEDDINGS


def is_relu(model: Model) -> bool:
    """Whether the activation of an encoder-decoder keeps its output alone."""
    return model.family in RELU_TWO_SIDED


def normalises_heads(model: Model) -> bool:
    """Whether queries and keys are normalised."""
    return model.family in HEAD_NORMS and not is_encoder(model)
