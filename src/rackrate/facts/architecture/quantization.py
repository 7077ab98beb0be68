"""Which format a checkpoint's weights are in, from its configuration."""

from __future__ import annotations

from rackrate.facts.architecture.reader import Reader

_PLAIN = {"bfloat16": "bfloat16", "float16": "float16", "float32": "float32", "half": "float16", "float": "float32"}
_FOUR, _EIGHT = 4, 8

# quant_method: the format of the weights, by their bits where the method allows several.
_BY_BITS = {
    "gptq": {_FOUR: "gptq-int4", _EIGHT: "gptq-int8"},
    "awq": {_FOUR: "awq-int4"},
    "auto-round": {_FOUR: "gptq-int4", _EIGHT: "gptq-int8"},
    "auto_round": {_FOUR: "gptq-int4", _EIGHT: "gptq-int8"},
    "intel/auto-round": {_FOUR: "gptq-int4", _EIGHT: "gptq-int8"},
}
_ALWAYS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "modelopt_fp4": "nvfp4"}


def native_format(reader: Reader) -> str:
    """The type of a plain checkpoint (``bfloat16``), the id of a weight format, or ``""`` where neither is said.

    ``quantization_config`` stands at the top, or with the text model of a
    vision-language model. Read from huggingface/transformers
    utils/quantization_config.py, vllm-project/compressed-tensors
    quantization/quant_args.py and NVIDIA ModelOpt's hf_quant_config.json.
    """
    inner = reader.inner("text_config", "llm_config", "language_config", "thinker_config")
    for table in (reader, inner):
        quantised = table.inner("quantization_config", "compression_config") if table is not None else None
        if quantised is not None:
            return quantised_format(quantised) or plain_type(reader, inner)
    return plain_type(reader, inner)


def plain_type(reader: Reader, inner: Reader | None) -> str:
    """The checkpoint's floating-point type."""
    for table in (reader, inner):
        name = table.text("torch_dtype", "dtype").removeprefix("torch.") if table is not None else ""
        if name in _PLAIN:
            return _PLAIN[name]
    return ""


def quantised_format(table: Reader) -> str:
    """The format that a table of quantisation settings means, ``""`` where it is none that is known."""
    method = table.text("quant_method", "quant_algo").casefold()
    if method in _ALWAYS:
        return _ALWAYS[method]
    if method in _BY_BITS:
        return _BY_BITS[method].get(table.maybe("bits", "w_bit") or _FOUR, "")
    if method == "bitsandbytes":
        return _bitsandbytes(table)
    if method == "modelopt":
        return _named(table.text("quant_algo").casefold())
    if method == "compressed-tensors":
        return _compressed(table)
    return _named(method)


def _bitsandbytes(table: Reader) -> str:
    if table.flag("load_in_8bit", "_load_in_8bit"):
        return "int8"
    return "nf4-dq" if table.flag("bnb_4bit_use_double_quant") else "nf4"


def _named(algorithm: str) -> str:
    """ModelOpt names the format itself."""
    for word, name in (("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8", "fp8"), ("w4a16_awq", "awq-int4")):
        if word in algorithm:
            return name
    return ""


def _compressed(table: Reader) -> str:
    """compressed-tensors: the bits and type of weights and of activations in the first group of layers."""
    groups = table.section("config_groups")
    group = next((g for g in map(groups.inner, list(groups.table)[:8]) if g is not None), groups)
    weights, inputs = group.section("weights"), group.inner("input_activations")
    bits, kind = weights.maybe("num_bits") or 0, weights.text("type", default="int")
    written = group.text("format") or table.text("format")
    if "mxfp4" in written or (kind == "float" and bits == _FOUR and weights.maybe("group_size") == 32):  # noqa: PLR2004
        return "mxfp4"
    if kind == "float":
        weight_only = "nvfp4-weight-only" if bits == _FOUR else "fp8-weight-only"
        computed = "nvfp4" if bits == _FOUR else "fp8"
        return {_FOUR: computed, _EIGHT: computed}.get(bits, "") if inputs is not None else weight_only
    if bits == _EIGHT:
        return "int8-w8a8" if inputs is not None else "gptq-int8"
    return "gptq-int4" if bits == _FOUR else ""
