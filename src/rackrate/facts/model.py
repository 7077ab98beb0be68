"""Models: the architecture numbers that memory and speed are computed from."""

from __future__ import annotations

from rackrate.values import Value


class Model(Value, frozen=True, kw_only=True):
    """One model's architecture.

    Counts are exact numbers of parameters; ``None`` means not known (encoders
    and diffusion models list only their counts). ``head_dim`` of MLA models is
    nope + rope. ``layers_full``, ``layers_windowed`` and ``layers_linear`` add
    up to the layers that keep any per-sequence state.
    """

    id: str
    family: str
    params_total: int
    params_active: int
    hidden_size: int | None
    layers: int | None
    attention_heads: int | None
    kv_heads: int | None
    head_dim: int | None
    intermediate_size: int | None
    vocab_size: int | None
    tie_embeddings: bool | None
    max_context: int | None
    attention: str
    layers_full: int | None
    layers_windowed: int | None
    window: int | None
    layers_linear: int | None
    mla_kv_lora_rank: int | None = None
    mla_qk_rope_head_dim: int | None = None
    mla_q_lora_rank: int | None = None
    mla_v_head_dim: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    moe_intermediate_size: int | None = None
    shared_experts: int | None = None
    dense_layers_first: int | None = None
    mlp_gated: bool | None = None
    modality: str = "text"
    native_dtype: str = ""
    source: str = ""
    notes: str = ""

    @property
    def is_moe(self) -> bool:
        """Whether only some experts work on a token."""
        return bool(self.experts)

    @property
    def is_mla(self) -> bool:
        """Whether the cache is one compressed latent per layer (multi-head latent attention)."""
        return bool(self.mla_kv_lora_rank)

    @property
    def generates_text(self) -> bool:
        """Whether the model is an autoregressive decoder with a KV cache."""
        return self.layers is not None and self.vocab_size is not None and not self.attention.startswith("full (bidir")

    @property
    def embedding_params(self) -> int:
        """Parameters of the input embedding and, when untied, of the output head."""
        if self.vocab_size is None or self.hidden_size is None:
            return 0
        return self.vocab_size * self.hidden_size * (1 if self.tie_embeddings else 2)
