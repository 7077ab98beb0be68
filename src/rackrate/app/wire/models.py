"""The JSON contract of ``model``: architecture, parameters, weights by format, cache by engine."""

from __future__ import annotations

from rackrate.app.wire.hosted import HostedPriceDoc
from rackrate.app.wire.parts import Document, FindingDoc, Part, RangeDoc


class GroupDoc(Part, frozen=True, kw_only=True):
    """Parameters of one group of tensors."""

    group: str
    params: int


class MixtureDoc(Part, frozen=True, kw_only=True):
    """The mixture of experts of a model."""

    experts: int
    experts_per_token: int
    expert_width: int | None
    shared_experts: int
    dense_layers: int


class LatentDoc(Part, frozen=True, kw_only=True):
    """Multi-head latent attention: widths of the cached latent and of its rotary part."""

    kv_rank: int
    rope_width: int
    query_rank: int | None
    value_width: int | None


class StoredTypeDoc(Part, frozen=True, kw_only=True):
    """Bytes of the tensors of one type, as the files name it."""

    type: str
    bytes: int


class StoredDoc(Part, frozen=True, kw_only=True):
    """What the files of the model hold, from their headers; ``left_out_bytes`` are not loaded to run it."""

    format: str
    files: int
    bytes: int
    left_out_bytes: int
    types: list[StoredTypeDoc]


class WeightDoc(Part, frozen=True, kw_only=True):
    """Bytes of all weights in one format; ``exact`` where the headers of files say so."""

    format: str
    title: str
    bits_per_weight: float
    bytes: float
    native: bool
    exact: bool


class GrowthDoc(Part, frozen=True, kw_only=True):
    """Cache of one sequence of this many tokens."""

    context_tokens: int
    bytes: RangeDoc


class KeptDoc(Part, frozen=True, kw_only=True):
    """How the cache of one sequence grows in these engines.

    ``bytes_per_token_beyond_window`` is what a token adds once sliding layers
    are full; ``state_bytes`` is the fixed state of linear layers.
    """

    engines: list[str]
    bits: int
    bytes_per_token: float
    bytes_per_token_beyond_window: float
    state_bytes: RangeDoc
    contexts: list[GrowthDoc]


class ModelDoc(Part, frozen=True, kw_only=True):
    """One model; what is not known is null. ``origin``: ``bundled``, ``files`` or ``hub``.

    ``hosted`` are prices of APIs, for models asked for by name.
    """

    id: str
    family: str
    modality: str
    origin: str
    params_total: int
    params_active: int
    params: list[GroupDoc]
    hidden_size: int | None
    layers: int | None
    attention_heads: int | None
    kv_heads: int | None
    head_dim: int | None
    intermediate_size: int | None
    vocab_size: int | None
    tie_embeddings: bool | None
    gated: bool | None
    max_context: int | None
    attention: str
    layers_full: int | None
    layers_windowed: int | None
    layers_linear: int | None
    window: int | None
    latent: LatentDoc | None
    mixture: MixtureDoc | None
    native_format: str
    stored: StoredDoc | None
    weights: list[WeightDoc]
    cache: list[KeptDoc]
    cache_unknown: str
    hosted: list[HostedPriceDoc]
    source: str
    notes: str


class ModelDocument(Document, frozen=True, kw_only=True):
    """Answer of ``model``: one model or several side by side."""

    models: list[ModelDoc]
    warnings: list[FindingDoc]


DOCUMENTS: dict[str, type[Document]] = {"model": ModelDocument}
