"""A model whose files are at hand: the exact bytes and counts of their headers laid over its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackrate.facts.architecture.tensors import Tally, Tensor, nearest_format, tally
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.problems import Code, Finding, Severity
from rackrate.values import replace

_PLAIN = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_BY_TYPE = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F8_E4M3": "fp8", "F8_E5M2": "fp8"}
_EIGHT = frozenset({"gptq-int8", "int8", "int8-w8a8", "fp8", "fp8-weight-only"})
_SAME_COUNT = 0.002
"""Counts that differ by less say nothing: buffers that checkpoints keep and classes do not count."""


def with_tensors(model: Model, tensors: Sequence[Tensor], formats: Mapping[str, WeightFormat], *, files: int) -> Model:
    """``model`` with what the headers of its safetensors files say.

    Bytes and the number of parameters are theirs. Where the count differs from
    the configuration's by more than 0.2 %, a remark says so.
    """
    native = model.native_dtype or _dominant(tensors)
    form = _PLAIN.get(native, native)
    bits = 8 if form in _EIGHT else 4
    counted = tally(tensors, layers=model.layers, tied=bool(model.tie_embeddings), form=form, bits=bits)
    if not counted.parameters:
        return model
    if form not in formats:
        width = 8 * counted.stored.loaded_bytes / counted.parameters
        form = nearest_format(width, formats, gguf=False)
    stored = replace(counted.stored, format=form, files=files)
    idle = model.params_total - model.params_active
    apart = counted.parameters / model.params_total - 1
    remarks = model.remarks if abs(apart) <= _SAME_COUNT else (*model.remarks, _differs(model, counted, apart))
    return replace(
        model,
        params_total=counted.parameters,
        params_active=max(1, counted.parameters - idle),
        native_dtype=native,
        stored=stored,
        remarks=remarks,
        source="config.json and headers of the files themselves",
    )


def _dominant(tensors: Sequence[Tensor]) -> str:
    """The type of most bytes, as configurations name it."""
    sums: dict[str, int] = {}
    for tensor in tensors:
        sums[tensor.type] = sums.get(tensor.type, 0) + tensor.size
    return _BY_TYPE.get(max(sums, key=sums.__getitem__), "") if sums else ""


def tensors_alone(
    tensors: Sequence[Tensor],
    formats: Mapping[str, WeightFormat],
    *,
    id: str,  # noqa: A002 - as users say
    files: int,
) -> Model:
    """A model of which only tensors are at hand: exact sizes, no architecture, so no cache and no speed."""
    native = _dominant(tensors)
    counted = tally(tensors, layers=None, tied=False, form=_PLAIN.get(native, native))
    total = max(1, counted.parameters)
    form = counted.stored.format
    if form not in formats:
        form = nearest_format(8 * counted.stored.loaded_bytes / total, formats, gguf=False)
    return Model(
        id=id,
        family="tensors",
        params_total=total,
        params_active=total,
        hidden_size=None,
        layers=None,
        attention_heads=None,
        kv_heads=None,
        head_dim=None,
        intermediate_size=None,
        vocab_size=None,
        tie_embeddings=None,
        max_context=None,
        attention="unknown: no configuration beside the tensors",
        layers_full=None,
        layers_windowed=None,
        window=None,
        layers_linear=None,
        native_dtype=native,
        source="headers of the files themselves",
        stored=replace(counted.stored, format=form, files=files),
        remarks=(_no_config(id),),
    )


def _differs(model: Model, counted: Tally, apart: float) -> Finding:
    return Finding(
        code=Code.MODEL_INEXACT,
        severity=Severity.WARNING,
        subject=f"{model.id} parameters",
        observed=f"{counted.parameters:,} in the files, {100 * abs(apart):.1f} % {'more' if apart > 0 else 'fewer'}",
        expected=f"{model.params_total:,} as config.json makes it",
        action="the files are believed; check that config.json belongs to them and that no file is missing",
    )


def _no_config(name: str) -> Finding:
    return Finding(
        code=Code.MODEL_INEXACT,
        severity=Severity.WARNING,
        subject=f"{name} config.json",
        observed="tensors without a configuration",
        expected="config.json beside them",
        action="give the folder with config.json to know layers, heads and cache",
    )
