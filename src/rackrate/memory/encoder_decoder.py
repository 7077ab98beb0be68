"""Encoder-decoders in inference: what the encoder made, and the cache that the decoder's layers keep of it."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.kv_cache import CacheShape, layer_bytes_per_token
from rackrate.memory.layer_pass import element_bytes
from rackrate.memory.phases import part
from rackrate.memory.traits import biases_scores
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

FRAMES_PER_POSITION = 2
"""Frames of the spectrogram for a position of Whisper's encoder: its second convolution has a stride of two."""


def source_copies(serving: Serving, policy: ServingPolicy) -> int:
    """Copies of what the encoder made: one for each beam, unless beams share it.

    transformers repeats the encoder's output for every beam before the decoder
    runs, so that each has keys and values of its own (generation/utils.py,
    _expand_inputs_for_generation); CTranslate2 does not (src/layers/transformer.cc,
    TransformerDecoder::replicate_state).
    """
    return 1 if policy.shares_source else serving.beams


def two_sided_shape(workload: Workload, layout: Layout, policy: ServingPolicy) -> CacheShape | Unknown:
    """The growth of the cache of an encoder-decoder on one card.

    Each layer of the decoder keeps keys and values of what it has written, for
    every beam, and once those of all positions of the encoder: 2 x layers x key
    width x (beams x tokens + copies x positions) values a sequence (arXiv
    1706.03762, section 3.2.3). Engines that page the cache page both (vllm-project/vllm
    v1/kv_cache_interface.py, CrossAttentionSpec).
    """
    model, serving = workload.model, workload.serving
    assert serving is not None
    each = layer_bytes_per_token(model, serving.cache_bits, layout.tensor, policy.mla_cache_padding)
    if isinstance(each, Unknown):
        return each
    layers, page = model.decoder_layers or 0, max(1, policy.page_tokens)
    positions = math.ceil(serving.prompt_tokens / page) * page
    return CacheShape(
        layer_bytes=each * serving.beams,
        full_layers=layers,
        windowed_layers=0,
        window=0,
        page_tokens=page,
        state_bytes=Range.exact(each * layers * positions * source_copies(serving, policy)),
    )


BIASED_BYTES = (4.0, 12.0, 12.0)
"""Bytes for each head and pair of positions while T5's encoder attends, in 16 bits.

transformers 5 keeps the bias and its sum with the mask (integrations/sdpa_attention.py,
create_position_bias_mask); 4 made scores, an FP32 copy and its softmax beside the bias
(models/t5/modeling_t5.py, T5Attention.forward).
"""


def source_parts(workload: Workload, layout: Layout, policy: ServingPolicy, working: float) -> list[Component]:
    """The spectrogram, which the caller keeps, and the encoder's output, which waits beside the decoder.

    Engines with a queue hand the output over and forget it. Biased scores are
    not there at once with the ``working`` bytes of the feed-forward block.
    """
    model, serving = workload.model, workload.serving
    if serving is None or not serving.encoded or policy.continuous_batching:
        return []
    size = element_bytes(workload.precision)
    positions = math.ceil(serving.concurrency / layout.data) * serving.prompt_tokens
    made = float(size * positions * (model.hidden_size or 0)) * source_copies(serving, policy)
    parts = [part("encoder_output", made, Phase.DECODE)]
    if biases_scores(model):
        pairs = float(positions * serving.prompt_tokens * (model.attention_heads or 0)) / layout.tensor * size / 2
        beyond = Range(*(max(0.0, each * pairs - working) for each in BIASED_BYTES))
        parts.append(part("biased_scores", beyond, Phase.PREFILL, note="beyond the activations freed by then"))
    if model.mel_bins:
        parts.append(part("spectrogram", float(size * positions * FRAMES_PER_POSITION * model.mel_bins)))
    return parts
