"""From the metadata and the tensors of a GGUF file to a model.

Keys: ggml-org/ggml docs/gguf.md and gguf-py/gguf/constants.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackrate.facts.architecture.decoder import attention_label
from rackrate.facts.architecture.encoder import LABEL
from rackrate.facts.architecture.patterns import FULL, LINEAR, NONE, WINDOWED
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.architecture.tensors import Tally, Tensor, nearest_format, tally
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.problems import Finding
from rackrate.values import replace

BLOCKS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("F32", "I32"), (1, 4)),
    **dict.fromkeys(("F16", "BF16", "I16"), (1, 2)),
    **dict.fromkeys(("F64", "I64"), (1, 8)),
    "I8": (1, 1),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q8_1": (32, 40),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "Q8_K": (256, 292),
    "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74),
    "IQ3_XXS": (256, 98),
    "IQ1_S": (256, 50),
    "IQ4_NL": (32, 18),
    "IQ3_S": (256, 110),
    "IQ2_S": (256, 82),
    "IQ4_XS": (256, 136),
    "IQ1_M": (256, 56),
    "TQ1_0": (256, 54),
    "TQ2_0": (256, 66),
    "MXFP4": (32, 17),
    "NVFP4": (64, 36),
    "Q1_0": (128, 18),
}
"""Values and bytes of a block of each type (ggml-org/llama.cpp ggml/src/ggml-common.h)."""

_FILE_TYPES = {0: "fp32", 1: "fp16", 32: "bf16", 2: "gguf-q4_0", 3: "gguf-q4_1", 7: "gguf-q8_0", 8: "gguf-q5_0"}
_FILE_TYPES |= {9: "gguf-q5_1", 10: "gguf-q2_k", 11: "gguf-q3_k_s", 12: "gguf-q3_k_m", 13: "gguf-q3_k_l"}
_FILE_TYPES |= {14: "gguf-q4_k_s", 15: "gguf-q4_k_m", 16: "gguf-q5_k_s", 17: "gguf-q5_k_m", 18: "gguf-q6_k"}
_FILE_TYPES |= {19: "gguf-iq2_xxs", 20: "gguf-iq2_xs", 21: "gguf-q2_k_s", 22: "gguf-iq3_xs", 23: "gguf-iq3_xxs"}
_FILE_TYPES |= {24: "gguf-iq1_s", 25: "gguf-iq4_nl", 26: "gguf-iq3_s", 27: "gguf-iq3_m", 28: "gguf-iq2_s"}
_FILE_TYPES |= {29: "gguf-iq2_m", 30: "gguf-iq4_xs", 31: "gguf-iq1_m", 36: "gguf-tq1_0", 37: "gguf-tq2_0"}
_PLAIN = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}

# Every n-th layer is full where the file does not say (llama.cpp src/llama-model.cpp, set_swa_pattern).
_EVERY = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gemma4": 6, "cohere2": 4, "gpt-oss": 2, "llama4": 4, "exaone4": 4}
_EVERY |= {"gemma-embedding": 6, "olmo3": 4}
_ENCODERS = ("bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "neo-bert")
_UNGATED = frozenset(
    {"gpt2", "gptneox", "starcoder", "starcoder2", "falcon", "bloom", "mpt", "phi2", "bert", "nemotron"}
)


def model_of_gguf(
    metadata: Mapping[str, object],
    tensors: Sequence[Tensor],
    formats: Mapping[str, WeightFormat],
    *,
    id: str,  # noqa: A002 - as users say
) -> Model | tuple[Finding, ...]:
    """The model that a GGUF header describes, with the exact bytes of its tensors; or what is wrong with it.

    Arrays of the metadata that are longer than a model has layers come as
    their length alone. Never raises, whatever the header says.
    """
    reader = Reader(metadata, "GGUF header")
    kind = reader.text("general.architecture")
    if not kind:
        reader.missing("general.architecture", "the architecture, such as 'llama'")
        return tuple(reader.findings)
    part = _Part(reader, kind)
    layers = part.whole("block_count", high=MOST_LAYERS)
    hidden = part.whole("embedding_length")
    tied = not any(tensor.name == "output.weight" for tensor in tensors)
    kept = layers - (part.maybe("nextn_predict_layers") or 0)
    counted = tally(tensors, layers=kept, tied=tied, form="")
    if not counted.parameters and not reader.findings:
        reader.missing("tensors", "at least one tensor; give the first file of a model that is split")
    if reader.findings:
        return tuple(reader.findings)
    found = _model(part, counted, (kept, hidden, tied))
    return _with_format(replace(found, id=id, family=kind), reader, counted, formats)


class _Part:
    """The keys of one architecture: ``llama.block_count`` is ``block_count`` here."""

    def __init__(self, reader: Reader, kind: str) -> None:
        self.reader = reader
        self.kind = kind

    def whole(self, key: str, *, high: int = 2**33) -> int:
        return self.reader.whole(f"{self.kind}.{key}", high=high)

    def maybe(self, key: str, *, low: int = 0) -> int | None:
        """The number under ``key``; of a list of one for each layer, the largest."""
        listed = self.wholes(key)
        if listed:
            return max(listed)
        return self.reader.maybe(f"{self.kind}.{key}", low=low)

    def wholes(self, key: str) -> tuple[int, ...]:
        return self.reader.wholes(f"{self.kind}.{key}")


def _model(part: _Part, counted: Tally, sizes: tuple[int, int, bool]) -> Model:
    layers, hidden, tied = sizes
    heads = part.maybe("attention.head_count") or 0
    experts, used = part.maybe("expert_count") or 0, part.maybe("expert_used_count") or 0
    idle = counted.experts * (experts - used) // experts if 0 < used < experts else 0
    kinds, window = _kinds(part, layers), part.maybe("attention.sliding_window")
    encoder = part.kind in _ENCODERS
    latent = part.maybe("attention.kv_lora_rank") or None
    each = hidden // heads if heads else 0
    key = part.maybe("attention.key_length_mla") or part.maybe("attention.key_length") or each
    value = part.maybe("attention.value_length_mla") or part.maybe("attention.value_length")
    kv_heads = part.maybe("attention.head_count_kv") or heads
    label = LABEL if encoder else "mla" if latent else attention_label(kinds, window)
    return Model(
        id="",
        family="",
        params_total=counted.parameters,
        params_active=counted.parameters - idle,
        hidden_size=hidden,
        layers=layers,
        attention_heads=heads or None,
        kv_heads=(heads if latent else kv_heads) or None,
        head_dim=key or None,
        intermediate_size=part.maybe("feed_forward_length") or part.maybe("expert_feed_forward_length"),
        vocab_size=part.maybe("vocab_size") or _tokens(part.reader),
        tie_embeddings=None if encoder else tied,
        max_context=part.maybe("context_length", low=1),
        attention=label,
        layers_full=None if encoder else kinds.count(FULL),
        layers_windowed=None if encoder else kinds.count(WINDOWED),
        window=window if WINDOWED in kinds else None,
        layers_linear=None if encoder else kinds.count(LINEAR),
        linear_state_values=_state(part, hidden) if LINEAR in kinds else None,
        mla_kv_lora_rank=latent,
        mla_qk_rope_head_dim=part.maybe("rope.dimension_count") if latent else None,
        mla_q_lora_rank=part.maybe("attention.q_lora_rank") or None,
        mla_v_head_dim=value if latent else None,
        experts=experts or None,
        experts_per_token=used or None,
        moe_intermediate_size=part.maybe("expert_feed_forward_length") if experts else None,
        shared_experts=part.maybe("expert_shared_count") or 0 if experts else None,
        dense_layers_first=part.maybe("leading_dense_block_count") or 0 if experts else None,
        mlp_gated=part.kind not in _UNGATED,
        modality="text-encoder" if encoder else "text",
        source="GGUF header of the model itself",
    )


def _tokens(reader: Reader) -> int | None:
    """The length of the vocabulary's list, which the reader of the header keeps as a number."""
    return reader.maybe("tokenizer.ggml.tokens", low=0) or None


def _kinds(part: _Part, layers: int) -> list[str]:
    """What each layer keeps of a sequence."""
    window = part.maybe("attention.sliding_window")
    heads = part.wholes("attention.head_count_kv")
    interval = part.maybe("full_attention_interval")
    if part.kind in {"mamba", "mamba2"}:
        return [LINEAR] * layers
    if interval and part.maybe("ssm.state_size"):
        return [FULL if (n + 1) % interval == 0 else LINEAR for n in range(layers)]
    if len(heads) >= layers > 0:
        other = LINEAR if part.maybe("ssm.state_size") or part.kind.startswith("lfm2") else NONE
        return [FULL if heads[n] else other for n in range(layers)]
    if not window:
        return [FULL] * layers
    return _windowed(part, layers)


def _windowed(part: _Part, layers: int) -> list[str]:
    """Sliding layers: a list of one for each layer, a period, or the architecture's own."""
    listed = part.reader.table.get(f"{part.kind}.attention.sliding_window_pattern")
    if isinstance(listed, Sequence) and not isinstance(listed, str) and len(listed) >= layers:
        return [WINDOWED if flag else FULL for flag in listed[:layers]]
    period = part.maybe("attention.sliding_window_pattern") if isinstance(listed, int) else None
    period = period or _EVERY.get(part.kind)
    if not period:
        return [WINDOWED] * layers if part.kind in {"phi3", "starcoder2", "llama"} else [FULL] * layers
    return [WINDOWED if (n + 1) % period else FULL for n in range(layers)]


def _state(part: _Part, hidden: int) -> int | None:
    """Values of the state of one sequence in one state-space layer: inner x state, and the convolution's channels."""
    state, inner = part.maybe("ssm.state_size"), part.maybe("ssm.inner_size")
    kernel = part.maybe("ssm.conv_kernel") or 1
    if not state or not inner:
        return hidden * ((part.maybe("shortconv.l_cache") or 3) - 1)
    groups = part.maybe("ssm.group_count") or 0
    return inner * state + (inner + 2 * groups * state) * (kernel - 1)


def _with_format(found: Model, reader: Reader, counted: Tally, formats: Mapping[str, WeightFormat]) -> Model:
    """The model with what its file holds; the format is the one that the file names, or the nearest in bits."""
    named = _FILE_TYPES.get(reader.maybe("general.file_type", low=0) or -1, "")
    if reader.table.get("general.file_type") == 0:
        named = "fp32"
    bits = 8 * counted.stored.loaded_bytes / counted.parameters
    form = named if named in formats else nearest_format(bits, formats, gguf=True)
    if form != named:
        reader.remark(
            "general.file_type",
            f"{bits:.2f} bits a weight, mostly {counted.stored.by_type[0][0]}",
            "a file type with figures of its own",
            f"sizes are exact; speed is reckoned as that of {form}",
        )
    stored = replace(counted.stored, format=form)
    return replace(found, native_dtype=_PLAIN.get(form, form), stored=stored, remarks=tuple(reader.remarks))
