"""Models: the architecture numbers that memory and speed are computed from."""

from __future__ import annotations

from rackrate.facts.pipeline import Pipeline
from rackrate.problems import Finding
from rackrate.values import Value


class Stored(Value, frozen=True, kw_only=True):
    """What the files of a checkpoint hold, from their headers: no estimate.

    ``format``: the id of the weight format that the files are in, or nearest
    to. ``by_type``: bytes by the tensors' type as the files name it.
    ``embedding_bytes`` and ``head_bytes`` are outside the layers (0 head: tied);
    ``vision_bytes`` are towers for images and sound. ``beyond_bytes`` are
    tensors that engines leave on disk: layers for speculative decoding.
    """

    format: str
    by_type: tuple[tuple[str, int], ...]
    embedding_bytes: int
    head_bytes: int
    layer_bytes: int
    vision_bytes: int = 0
    beyond_bytes: int = 0
    files: int = 1

    @property
    def loaded_bytes(self) -> int:
        """Bytes that are loaded to run the model."""
        return self.embedding_bytes + self.head_bytes + self.layer_bytes + self.vision_bytes


class Tower(Value, frozen=True, kw_only=True):
    """The sizes of a vision tower as a model's own configuration says them; 0 where it does not.

    ``side``: pixels a side of the images or tiles that it was made for;
    ``merge``: patches a side that become one token.
    """

    width: int
    feed: int
    layers: int
    side: int = 0
    patch: int = 0
    merge: int = 0


class Model(Value, frozen=True, kw_only=True):
    """One model's architecture.

    Counts are exact numbers of parameters; ``None`` means not known (encoders
    and diffusion models list only their counts). ``head_dim`` of MLA models is
    nope + rope. ``layers_full``, ``layers_windowed`` and ``layers_linear`` add
    up to the layers that keep any per-sequence state.

    Encoder-decoders say how many layers each side has; ``encoder_positions`` is
    None where the encoder's input may have any length, else the number that it
    always has (Whisper: 1,500 of 20 ms), and ``mel_bins`` the height of its
    spectrogram.

    Models read from a user's files say more: ``params_by_group`` (exact, from
    the configuration), ``linear_state_values`` (of one sequence in one linear
    layer), ``stored`` (bytes in the files), ``tower`` (the shape of what sees),
    ``pipeline`` (the networks of one that makes images) and ``remarks`` (what is
    inexact).

    ``tower_params``: parameters of a vision tower that ``params_total`` leaves
    out. ``rotary_positions``: positions in all tables of rotary angles, where
    they are not those of the context (stretched, or two tables).
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
    encoder_layers: int | None = None
    decoder_layers: int | None = None
    encoder_positions: int | None = None
    mel_bins: int | None = None
    mlp_gated: bool | None = None
    modality: str = "text"
    native_dtype: str = ""
    source: str = ""
    notes: str = ""
    params_by_group: tuple[tuple[str, int], ...] = ()
    linear_state_values: int | None = None
    stored: Stored | None = None
    tower: Tower | None = None
    tower_params: int = 0
    rotary_positions: int | None = None
    pipeline: Pipeline | None = None
    remarks: tuple[Finding, ...] = ()

    @property
    def is_moe(self) -> bool:
        """Whether only some experts work on a token."""
        return bool(self.experts)

    @property
    def is_mla(self) -> bool:
        """Whether the cache is one compressed latent per layer (multi-head latent attention)."""
        return bool(self.mla_kv_lora_rank)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether an encoder reads the input and a decoder attends to what it made."""
        both = bool(self.encoder_layers and self.decoder_layers)
        return both or (" enc " in self.attention and " dec " in self.attention)

    @property
    def only_encodes(self) -> bool:
        """Whether every token sees every other and nothing is generated, as in embedding and ranking models."""
        return self.attention.startswith("full (bidir")

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
