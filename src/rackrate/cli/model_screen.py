"""The screen of ``model``: one model in full, a few side by side, or a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rackrate.cli.hosted_screen import model_rows, of_model
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.sections import warnings
from rackrate.units import GB, KB, MB, TB, format_bytes, format_count

if TYPE_CHECKING:
    from rackrate.app.wire.models import KeptDoc, ModelDoc, ModelDocument

_SIDE_BY_SIDE_MOST = 4

# ---------------------------------------------------------------- rows for machines

_KEYS: tuple[str, ...] = (
    "id",
    "family",
    "modality",
    "origin",
    "params_total",
    "params_active",
    "layers",
    "hidden_size",
)
_KEYS += ("attention_heads", "kv_heads", "head_dim", "vocab_size", "max_context", "attention", "window")
_KEYS += ("native_format",)
_CACHE_KEYS = ("cache_bytes_per_token_16bit", "cache_bytes_per_token_8bit")
_FORMATS = ("bf16", "fp8", "gptq-int4", "gguf-q4_k_m")


def table(document: ModelDocument, *, listed: bool = False) -> Table:
    """Every figure of one model, or a row for each of several."""
    if len(document.models) == 1 and not listed:
        return _figures(document.models[0])
    heads = (*_KEYS, *(f"{form.replace('-', '_')}_bytes" for form in _FORMATS), "native_bytes", *_CACHE_KEYS)
    return Table(keys=heads, titles=heads, rows=tuple(map(_row, document.models)))


def _row(model: ModelDoc) -> tuple[str, ...]:
    sizes = {weight.format: weight.bytes for weight in model.weights}
    native = next((weight.bytes for weight in model.weights if weight.native), None)
    cache = {kept.bits: kept.bytes_per_token for kept in reversed(model.cache)}
    return (
        *(_plain(getattr(model, key)) for key in _KEYS),
        *(_plain(sizes.get(form)) for form in _FORMATS),
        _plain(native),
        *(_plain(cache.get(bits)) for bits in (16, 8)),
    )


def _figures(model: ModelDoc) -> Table:
    """All numbers of one model: what, of what, at which length of context, how many."""
    rows = [
        ("size", key, "", _plain(getattr(model, key)), "") for key in _KEYS[4:13] if getattr(model, key) is not None
    ]
    rows += [("parameters", group.group, "", str(group.params), "") for group in model.params]
    rows += [("weights_bytes", w.format, "", _plain(w.bytes), _how(w.exact, w.native)) for w in model.weights]
    for kept in model.cache:
        name, engines = f"{kept.bits} bit", " ".join(kept.engines)
        rows.append(("cache_bytes_per_token", name, "", _plain(kept.bytes_per_token), engines))
        rows += [
            ("cache_bytes", name, str(at.context_tokens), _plain(at.bytes.likely), engines) for at in kept.contexts
        ]
    rows += model_rows(model.hosted)
    heads = ("figure", "of", "context_tokens", "value", "note")
    return Table(keys=heads, titles=heads, rows=tuple(rows), right=frozenset({2, 3}))


def _how(exact: bool, native: bool) -> str:
    return "from the files" if exact else "native" if native else ""


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- screens


def screen(document: ModelDocument, *, listed: bool = False) -> Iterator[Part]:
    """One model, a column for each of a few, or a short list."""
    if len(document.models) == 1 and not listed:
        yield from _one(document.models[0])
    elif len(document.models) <= _SIDE_BY_SIDE_MOST and not listed:
        yield drawn(_columns(document.models))
        yield ""
    else:
        yield drawn(_listing(document.models))
    yield from warnings(document.warnings)
    yield f"Facts {document.facts_digest[:12]}, rackrate {document.rackrate_version}."


def _one(model: ModelDoc) -> Iterator[Part]:
    yield f"{model.id}: {model.family}, {model.modality}"
    yield ""
    yield pairs([(f"  {name}", text) for name, of in _WORDS if (text := of(model))])
    yield ""
    yield drawn(_account(model))
    yield ""
    yield drawn(_formats(model))
    yield ""
    yield from _cache(model)
    yield from of_model(model.hosted)
    notes = [("  -", text) for text in (model.notes, f"source: {model.source}") if text]
    yield pairs(notes, style=PLAIN)


def _account(model: ModelDoc) -> Table:
    rows = tuple((g.group, f"{g.params:,}", f"{100 * g.params / model.params_total:.1f} %") for g in model.params)
    heads = ("parameters of", "number", "share")
    return Table(keys=heads, titles=heads, rows=rows, right=frozenset({1, 2}))


def _formats(model: ModelDoc) -> Table:
    rows = tuple(
        (
            weight.format,
            f"{weight.bits_per_weight:g}",
            _decimal(weight.bytes),
            format_bytes(weight.bytes, digits=2),
            _how(weight.exact, weight.native),
        )
        for weight in model.weights
    )
    heads = ("weights in", "bits", "decimal", "binary", "")
    return Table(keys=heads, titles=heads, rows=rows, right=frozenset({1, 2, 3}))


def _decimal(count: float) -> str:
    """Bytes in the units that files are sold and downloaded in: ``13.48 GB``."""
    factor, name = next(((f, n) for f, n in ((TB, "TB"), (GB, "GB"), (MB, "MB")) if count >= f), (KB, "kB"))
    return f"{count / factor:,.2f} {name}"


def _cache(model: ModelDoc) -> Iterator[Part]:
    """A row for each way that engines keep the cache, a column for each length."""
    if not model.cache:
        yield f"KV cache: {model.cache_unknown}."
        yield ""
        return
    lengths = [at.context_tokens for at in model.cache[0].contexts][-_LENGTHS_AT_MOST:]
    rows = tuple(
        (
            f"{kept.bits} bit",
            f"{kept.bytes_per_token:,.0f}",
            *(_grown(kept, tokens) for tokens in lengths),
            _engines(model, kept),
        )
        for kept in model.cache
    )
    heads = ("KV cache", "B/token", *map(_length, lengths), "in")
    right = frozenset(range(1, len(heads) - 1))
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=right))
    yield ""


_LENGTHS_AT_MOST = 4


def _grown(kept: KeptDoc, tokens: int) -> str:
    return next(format_bytes(at.bytes.likely) for at in kept.contexts if at.context_tokens == tokens)


def _engines(model: ModelDoc, kept: KeptDoc) -> str:
    """The engines that keep the cache so; all of them where they do not differ."""
    alike = sum(other.bits == kept.bits for other in model.cache) == 1
    return "every engine" if alike else ", ".join(kept.engines)


def _length(tokens: int) -> str:
    """A length of context as people write it: ``32k``."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 and tokens >= 1024 else f"{tokens:,}"  # noqa: PLR2004


# ---------------------------------------------------------------- the architecture in words


def _parameters(model: ModelDoc) -> str:
    active = "" if model.params_active == model.params_total else f", {format_count(model.params_active)} for a token"
    return f"{format_count(model.params_total)} ({model.params_total:,}){active}"


def _layers(model: ModelDoc) -> str:
    if model.layers is None:
        return ""
    width = f" of width {model.hidden_size:,}" if model.hidden_size else ""
    feed = f", feed-forward {model.intermediate_size:,}" if model.intermediate_size else ""
    gate = "" if model.gated is None or not feed else ", gated" if model.gated else ", not gated"
    return f"{model.layers}{width}{feed}{gate}"


def _attention(model: ModelDoc) -> str:
    if not model.attention_heads:
        return model.attention
    heads = f"{model.attention_heads} query heads"
    if model.head_dim:
        heads += f" of {model.head_dim}"
    if model.latent is not None:
        return f"{heads}; {_latent(model)}"
    return f"{heads}, {_sharing(model)}; {model.attention}"


def _latent(model: ModelDoc) -> str:
    latent = model.latent
    assert latent is not None
    more = f"; {model.attention}" if model.attention != "mla" else ""
    return f"latent (MLA): {latent.kv_rank} + {latent.rope_width} values a token and layer{more}"


def _sharing(model: ModelDoc) -> str:
    """How many query heads share a key-value head, in words."""
    heads, kv_heads = model.attention_heads or 0, model.kv_heads or 0
    if not kv_heads:
        return "key-value heads unknown"
    if kv_heads == heads:
        return f"{kv_heads} key-value heads (multi-head)"
    kind = "multi-query" if kv_heads == 1 else f"grouped {heads / kv_heads:g} to 1"
    return f"{kv_heads} key-value head{'s' if kv_heads > 1 else ''} ({kind})"


def _cached_layers(model: ModelDoc) -> str:
    named = (("full", model.layers_full), ("sliding", model.layers_windowed), ("linear", model.layers_linear))
    kept = [f"{count} {name}" for name, count in named if count]
    window = f", window {model.window:,}" if model.window and model.layers_windowed else ""
    return f"{' + '.join(kept)}{window}" if len(kept) > 1 or window or model.layers_linear else ""


def _experts(model: ModelDoc) -> str:
    found = model.mixture
    if found is None:
        return ""
    width = f" of width {found.expert_width:,}" if found.expert_width else ""
    shared = f", {found.shared_experts} shared" if found.shared_experts else ""
    dense = f"; {found.dense_layers} layers dense" if found.dense_layers else ""
    return f"{found.experts}{width}, {found.experts_per_token} for a token{shared}{dense}"


def _vocabulary(model: ModelDoc) -> str:
    if not model.vocab_size:
        return ""
    head = "" if model.tie_embeddings is None else ", head tied" if model.tie_embeddings else ", head of its own"
    return f"{model.vocab_size:,} tokens{head}"


def _context(model: ModelDoc) -> str:
    return f"{model.max_context:,} tokens" if model.max_context else ""


def _files(model: ModelDoc) -> str:
    stored = model.stored
    if stored is None:
        return ""
    types = ", ".join(f"{each.type} {format_bytes(each.bytes)}" for each in stored.types[:4])
    more = f" and {len(stored.types) - 4} more types" if len(stored.types) > 4 else ""  # noqa: PLR2004 - as above
    left = f"; {format_bytes(stored.left_out_bytes)} more stay on disk" if stored.left_out_bytes else ""
    files = f"{stored.files} file{'s' if stored.files > 1 else ''}"
    return f"{format_bytes(stored.bytes, digits=2)} in {files}: {types}{more}{left}"


_WORDS: tuple[tuple[str, Callable[[ModelDoc], str]], ...] = (
    ("parameters", _parameters),
    ("layers", _layers),
    ("attention", _attention),
    ("layers keep", _cached_layers),
    ("experts", _experts),
    ("vocabulary", _vocabulary),
    ("context", _context),
    ("native format", lambda m: m.native_format or "unknown"),
    ("files", _files),
)


def _weight(form: str) -> Callable[[ModelDoc], str]:
    def value(model: ModelDoc) -> str:
        return next((format_bytes(w.bytes, digits=2) for w in model.weights if w.format == form), "")

    return value


def _per_token(bits: int) -> Callable[[ModelDoc], str]:
    def value(model: ModelDoc) -> str:
        kept = next((kept for kept in model.cache if kept.bits == bits), None)
        return f"{kept.bytes_per_token:,.0f} B" if kept is not None else model.cache_unknown

    return value


def _at_most(model: ModelDoc) -> str:
    """The cache at the longest context, in the engine that keeps least and in the one that keeps most."""
    ends = [kept.contexts[-1] for kept in model.cache if kept.bits == 16]  # noqa: PLR2004 - the usual cache
    if not ends:
        return model.cache_unknown
    low, high = (pick(end.bytes.likely for end in ends) for pick in (min, max))
    text = format_bytes(low) if low == high else f"{format_bytes(low)} to {format_bytes(high)}"
    return f"{text} at {_length(ends[0].context_tokens)}"


def _columns(models: list[ModelDoc]) -> Table:
    named = (
        *_WORDS,
        *((f"weights {form}", _weight(form)) for form in _FORMATS),
        ("KV a token, 16 bit", _per_token(16)),
        ("KV a token, 8 bit", _per_token(8)),
        ("KV at full context", _at_most),
    )
    rows = tuple((name, *(of(model) for model in models)) for name, of in named)
    shown = tuple(row for row in rows if any(row[1:]))
    return Table(keys=("figure", *(m.id for m in models)), titles=("", *(m.id for m in models)), rows=shown)


def _listing(models: list[ModelDoc]) -> Table:
    rows = tuple(
        (
            model.id,
            model.family,
            format_count(model.params_total),
            "" if model.params_active == model.params_total else format_count(model.params_active),
            _length(model.max_context) if model.max_context else "",
            f"{model.cache[0].bytes_per_token / 1024:,.4g}" if model.cache else "-",
        )
        for model in models
    )
    heads = ("id", "family", "params", "active", "context", "KV KiB/token")
    return Table(keys=heads, titles=heads, rows=rows, right=frozenset({2, 3, 4, 5}))
