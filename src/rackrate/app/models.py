"""The use case ``model``: architecture, parameters, weights by format and cache by engine, of any model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from rackrate.app.checkpoint.find import HUB, is_path, own_model
from rackrate.app.context import Context, context
from rackrate.app.documents import finding_docs, header, span
from rackrate.app.wire.hosted import HostedPriceDoc
from rackrate.app.wire.models import (
    GroupDoc,
    GrowthDoc,
    KeptDoc,
    LatentDoc,
    MixtureDoc,
    ModelDoc,
    ModelDocument,
    StoredDoc,
    StoredTypeDoc,
    WeightDoc,
)
from rackrate.evidence import Unknown
from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.facts.model import Model, Stored
from rackrate.facts.names import resolve_model
from rackrate.memory.kv_cache import CacheShape, cache_shape
from rackrate.memory.stages import Stage
from rackrate.memory.weights import is_encoder, parameter_groups, weight_bytes
from rackrate.problems import Code, Finding, Refused, nearest
from rackrate.values import replace

CONTEXTS = (2048, 8192, 32768, 131072, 1048576)
"""Lengths of a sequence at which caches are shown, as far as the model goes, and the most that it can."""

CACHE_BITS = (16, 8)
_MODELS_AT_MOST = 64


def model(names: str | Sequence[str] = (), *, family: str = "", at: date | None = None) -> ModelDocument:
    """What ``names`` are: bundled ids, paths of files, ids on the Hugging Face Hub; all bundled when empty.

    Args:
        names: each an id, a config.json, a folder, a ``.safetensors`` or ``.gguf`` file, or ``hub:org/name``.
        family: with no names, only the models of this family.
        at: the day of the question (today).

    Returns:
        The document that ``rackrate model --json`` prints.

    Raises:
        Refused: a model is not known or cannot be read.

    >>> from rackrate import api
    >>> [kept] = [k for k in api.model(["deepseek-ai/DeepSeek-V3"]).models[0].cache if k.bits == 16]
    >>> kept.bytes_per_token
    70272.0
    """
    here = context(at)
    names = (names,) if isinstance(names, str) else names
    found = _named(names, here) if names else _listed(family, here.book)
    if names and family:
        raise Refused([_both(family)])
    return ModelDocument(
        **header("model", here),
        models=[_doc(each, here, origin, named=bool(names)) for each, origin in found],
        warnings=finding_docs(finding for each, _ in found for finding in each.remarks),
    )


# ---------------------------------------------------------------- which models


def _named(names: Sequence[str], here: Context) -> list[tuple[Model, str]]:
    """Each model with where it comes from; everything that is wrong is said at once."""
    found: dict[str, tuple[Model, str]] = {}
    problems: list[Finding] = []
    for text in names[:_MODELS_AT_MOST]:
        own = own_model(text, here.book, or_base=False)
        if own is None:
            known = resolve_model(text, here.book.model_ids)
            if isinstance(known, Finding):
                problems.append(replace(known, observed=repr(known.observed)))
            else:
                found.setdefault(known, (here.book.model(known), "bundled"))
        elif isinstance(own, Model):
            found.setdefault(own.id, (own, _origin(text)))
        else:
            problems += own
    if problems:
        raise Refused(list(dict.fromkeys(problems)))
    return list(found.values())


def _origin(text: str) -> str:
    """Whether a model of the user's own was named by a path or is on the Hub."""
    from pathlib import Path

    return "hub" if text.startswith(HUB) or not (is_path(text) or Path(text).exists()) else "files"


def _listed(family: str, book: FactBook) -> list[tuple[Model, str]]:
    """All bundled models, or those of a family."""
    models = [book.model(name) for name in book.model_ids]
    wanted = family.casefold().strip()
    found = [each for each in models if not wanted or each.family.casefold() == wanted]
    if not found:
        raise Refused([_no_family(family, sorted({each.family for each in models}))])
    return [(each, "bundled") for each in found]


def _no_family(family: str, known: Iterable[str]) -> Finding:
    families = list(known)
    close = nearest(family, families)
    action = f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(families)}"
    return Finding(
        code=Code.UNKNOWN_NAME, subject="--family", observed=repr(family), expected="a family of models", action=action
    )


def _both(family: str) -> Finding:
    return Finding(
        code=Code.BAD_VALUE,
        subject="--family",
        observed=f"{family!r} beside named models",
        expected="models by name, or all of one family",
        action="leave out one of them",
    )


# ---------------------------------------------------------------- one model


def _doc(each: Model, here: Context, origin: str, *, named: bool) -> ModelDoc:
    book = here.book
    cache = cache_docs(each, book)
    return ModelDoc(
        id=each.id,
        family=each.family,
        modality=each.modality,
        origin=origin,
        params_total=each.params_total,
        params_active=each.params_active,
        params=_groups(each),
        hidden_size=each.hidden_size,
        layers=each.layers,
        attention_heads=each.attention_heads,
        kv_heads=each.kv_heads,
        head_dim=each.head_dim,
        intermediate_size=each.intermediate_size,
        vocab_size=each.vocab_size,
        tie_embeddings=each.tie_embeddings,
        gated=each.mlp_gated,
        max_context=each.max_context,
        attention=each.attention,
        layers_full=each.layers_full,
        layers_windowed=each.layers_windowed,
        layers_linear=each.layers_linear,
        window=each.window,
        latent=_latent(each),
        mixture=_mixture(each),
        native_format=each.native_dtype,
        stored=_stored(each.stored),
        weights=_weights(each, book),
        cache=cache if isinstance(cache, list) else [],
        cache_unknown=cache.reason if isinstance(cache, Unknown) else "",
        hosted=_hosted(each, here) if named else [],
        source=each.source,
        notes=each.notes,
    )


def _hosted(each: Model, here: Context) -> list[HostedPriceDoc]:
    from rackrate.app.hosting import hosted_prices_of  # imported here: the list of all models shows no prices

    return hosted_prices_of(each, here)


def _groups(each: Model) -> list[GroupDoc]:
    """The account of parameters: counted from the model's own configuration, or by the closed formulas."""
    groups = each.params_by_group
    if not groups:
        by_formula = parameter_groups(each)
        groups = tuple((name, getattr(by_formula, name)) for name in by_formula.__struct_fields__)
    return [GroupDoc(group=name, params=count) for name, count in groups if count]


def _latent(each: Model) -> LatentDoc | None:
    if not each.mla_kv_lora_rank:
        return None
    return LatentDoc(
        kv_rank=each.mla_kv_lora_rank,
        rope_width=each.mla_qk_rope_head_dim or 0,
        query_rank=each.mla_q_lora_rank,
        value_width=each.mla_v_head_dim,
    )


def _mixture(each: Model) -> MixtureDoc | None:
    if not each.experts:
        return None
    return MixtureDoc(
        experts=each.experts,
        experts_per_token=each.experts_per_token or 0,
        expert_width=each.moe_intermediate_size,
        shared_experts=each.shared_experts or 0,
        dense_layers=each.dense_layers_first or 0,
    )


def _stored(stored: Stored | None) -> StoredDoc | None:
    if stored is None:
        return None
    return StoredDoc(
        format=stored.format,
        files=stored.files,
        bytes=stored.loaded_bytes,
        left_out_bytes=stored.beyond_bytes,
        types=[StoredTypeDoc(type=name, bytes=size) for name, size in stored.by_type],
    )


def whole(each: Model) -> Stage:
    """All of a model on one card."""
    layers = max(1, each.layers or 0)
    return Stage(layers=layers, of=layers, first=True, last=True)


_NATIVE = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "compressed-tensors": "gptq-int4"}


def _weights(each: Model, book: FactBook) -> list[WeightDoc]:
    """Bytes in every format that is known, the widest first."""
    groups, stage = parameter_groups(each), whole(each)
    native = _NATIVE.get(each.native_dtype, each.native_dtype)
    stored = each.stored.format if each.stored is not None else ""
    forms = sorted(book.formats.values(), key=lambda form: -form.bits_per_weight)
    return [
        WeightDoc(
            format=form.id,
            title=form.title,
            bits_per_weight=form.bits_per_weight,
            bytes=weight_bytes(each, groups, stage, form, ties=True),
            native=form.id in {native, stored},
            exact=form.id == stored,
        )
        for form in forms
    ]


# ---------------------------------------------------------------- the cache


def cache_docs(each: Model, book: FactBook) -> list[KeptDoc] | Unknown:
    """The growth of the cache in every engine that serves; engines that agree stand together."""
    if is_encoder(each):
        return Unknown("keeps no cache: nothing is generated")
    if not each.layers:
        return Unknown("layers and heads are not known")
    contexts = _contexts(each)
    found: list[KeptDoc] = []
    for bits in CACHE_BITS:
        for engine in map(book.engine, book.engine_ids):
            doc = _kept(each, engine, bits, contexts)
            if isinstance(doc, Unknown):
                return doc
            if doc is not None:
                found.append(doc)
    return _together(found)


def _contexts(each: Model) -> list[int]:
    most = each.max_context or CONTEXTS[-2]
    return sorted({tokens for tokens in CONTEXTS if tokens < most} | {most})


def _kept(each: Model, engine: Engine, bits: int, contexts: Sequence[int]) -> KeptDoc | Unknown | None:
    """The cache in one engine; None where the engine serves no text."""
    if engine.serving is None or "inference" not in engine.tasks:
        return None
    shape = cache_shape(each, whole(each), 1, bits, engine.serving)
    if isinstance(shape, Unknown):
        return shape
    return KeptDoc(
        engines=[engine.id],
        bits=bits,
        bytes_per_token=shape.bytes_per_token(0),
        bytes_per_token_beyond_window=shape.bytes_per_token(max(shape.window, 1)),
        state_bytes=span(shape.state_bytes),
        contexts=[_growth(shape, tokens) for tokens in contexts],
    )


def _growth(shape: CacheShape, tokens: int) -> GrowthDoc:
    return GrowthDoc(context_tokens=tokens, bytes=span(shape.sequence_bytes(tokens)))


def _together(found: Iterable[KeptDoc]) -> list[KeptDoc]:
    """Engines with the same numbers as one."""
    groups: dict[object, KeptDoc] = {}
    for doc in found:
        key = (doc.bits, doc.bytes_per_token, doc.bytes_per_token_beyond_window, tuple(doc.contexts))
        same = groups.get(key)
        groups[key] = doc if same is None else replace(same, engines=[*same.engines, *doc.engines])
    return list(groups.values())
