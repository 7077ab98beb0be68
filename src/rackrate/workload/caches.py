"""Types of the KV cache: what an engine offers for a model, and a job whose cache is kept in one."""

from __future__ import annotations

from rackrate.facts.engine import Engine
from rackrate.facts.engine_serving import CacheType
from rackrate.facts.model import Model
from rackrate.values import replace
from rackrate.workload.workload import Serving

PLAIN_BITS = {"fp32": 32.0, "bf16": 16.0, "fp16": 16.0}
"""Types without scales, which every engine has."""

_PLAIN = {name: CacheType(id=name, bits=bits) for name, bits in PLAIN_BITS.items()}


def cache_types(engine: Engine, model: Model) -> dict[str, CacheType]:
    """The types that ``engine`` can keep the cache of ``model`` in, by id: plain ones, then those of its file."""
    offered = engine.serving.cache_types if engine.serving is not None else ()
    able = [kind for kind in offered if not why_not(kind, model)]
    return _PLAIN | {kind.id: kind for kind in able}


def why_not(kind: CacheType, model: Model) -> str:
    """Why the cache of ``model`` cannot be of this type in the engine that has it; empty where it can."""
    if model.is_mla and not kind.latents:
        return "latent attention"
    if kind.all_full and (model.layers_windowed or model.layers_linear):
        return "layers with a window or a state"
    if kind.block and (model.head_dim or 0) % kind.block:
        return f"heads of {model.head_dim}, which blocks of {kind.block} do not divide"
    return ""


def cached_as(serving: Serving, model: Model, keys: CacheType, values: CacheType | None = None) -> Serving:
    """``serving`` with its cache in these types; latents are keys and values in one."""
    head = model.head_dim or 0
    bits = keys.bits_at(head)
    if values is not None and not model.is_mla:
        bits = (bits + values.bits_at(head)) / 2
    return replace(serving, cache_bits=bits, cache=keys, value_cache=values)
