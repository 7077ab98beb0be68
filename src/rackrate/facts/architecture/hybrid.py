"""Hybrids: decoders in which most layers keep a state of fixed size and some, or none, attend to every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import HIDDEN, LAYERS, Layer, Shape, Sizes, decoder, ends, sizes, tied
from rackrate.facts.architecture.dense import LLAMA, STYLES, attention_account
from rackrate.facts.architecture.latent import label, latent_account, latent_shape, latent_sizes, with_head
from rackrate.facts.architecture.mixers import delta_net, gated_attention, mamba, mamba2
from rackrate.facts.architecture.mixture import Count, Experts, expert_account, experts_of, mixture_shape
from rackrate.facts.architecture.parameters import delta_attention, mlp, router, short_convolution
from rackrate.facts.architecture.patterns import FULL, LINEAR, NONE, layer_kinds, sparse_layers
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.model import Model
from rackrate.values import replace


def qwen3_next(reader: Reader, kind: str) -> Model:
    """Qwen3-Next and Qwen3.5: three gated delta networks, then one gated attention block; dense or a mixture."""
    size = sizes(reader, width=0, head_dim=256)
    mixer, state = delta_net(reader, size.hidden)
    full = Layer(kind=FULL, parts=gated_attention(reader, size))
    linear = Layer(kind=LINEAR, parts=mixer, state_values=state)
    mixers = [full if each == FULL else linear for each in layer_kinds(reader, kind, size.layers)]
    norms = Account(norms=2 * size.hidden)
    dense_block = Account(mlp=mlp(size.hidden, size.width))
    feeds, shape = [dense_block] * size.layers, Shape()
    if kind != "qwen3_5_text":
        has = Experts(shared_gate=True)
        count, sparse = experts_of(reader, has), sparse_layers(reader, size.layers)
        mixed = expert_account(size.hidden, count, has)
        feeds = [mixed if each else dense_block for each in sparse]
        shape = mixture_shape(reader, kind, count, sparse)
    return _stacked(reader, size, mixers, [feed + norms for feed in feeds], shape)


def jamba(reader: Reader, kind: str) -> Model:
    """Jamba: Mamba layers, every eighth with attention, every second with a mixture (arXiv 2403.19887)."""
    size = sizes(reader)
    period = reader.whole("attn_layer_period", default=8) or 1
    offset = reader.count("attn_layer_offset", default=4)
    parts, state = mamba(reader, size.hidden, norms=True)
    full = Layer(kind=FULL, parts=attention_account(reader, size, STYLES["mistral"]))
    linear = Layer(kind=LINEAR, parts=parts, state_values=state)
    mixers = [full if n % period == offset else linear for n in range(size.layers)]
    count = experts_of(reader, Experts())
    sparse = sparse_layers(reader, size.layers) if count.experts > 1 else [False] * size.layers
    mixed = expert_account(size.hidden, count, Experts())
    dense_block = Account(mlp=mlp(size.hidden, size.width))
    norms = Account(norms=2 * size.hidden)
    feeds = [(mixed if each else dense_block) + norms for each in sparse]
    return _stacked(reader, size, mixers, feeds, mixture_shape(reader, kind, count, sparse))


def bamba(reader: Reader, kind: str) -> Model:
    """Bamba and Granite 4 hybrids: Mamba-2 layers with a few attention layers; Granite's with a mixture."""
    size = sizes(reader, width=0)
    parts, state = mamba2(reader, size.hidden)
    full = Layer(kind=FULL, parts=attention_account(reader, size, LLAMA))
    linear = Layer(kind=LINEAR, parts=parts, state_values=state)
    attending = set(reader.wholes("attn_layer_indices"))
    kinds = [FULL if n in attending else LINEAR for n in range(size.layers)]
    if reader.texts("layer_types"):
        kinds = layer_kinds(reader, kind, size.layers)
    feed, shape = Account(mlp=mlp(size.hidden, size.width)), Shape()
    if kind == "granitemoehybrid":
        shared = reader.count("shared_intermediate_size")
        feed = Account(mlp=mlp(size.hidden, shared))
        if reader.count("num_local_experts"):
            count = experts_of(reader, Experts())._replace(shared=0)
            feed += expert_account(size.hidden, count, Experts())
            shape = mixture_shape(reader, kind, count, [True] * size.layers)
    norms = Account(norms=2 * size.hidden)
    mixers = [full if each == FULL else linear for each in kinds]
    return _stacked(reader, size, mixers, [feed + norms] * size.layers, shape)


def falcon_h1(reader: Reader, _kind: str) -> Model:
    """Falcon-H1: attention and Mamba-2 side by side in every layer."""
    size = sizes(reader)
    parts, state = mamba2(reader, size.hidden, norm=reader.flag("mamba_rms_norm"))
    attending = attention_account(reader, size, LLAMA)
    feed = Account(mlp=mlp(size.hidden, size.width, bias=reader.flag("mlp_bias")), norms=2 * size.hidden)
    halves = [Layer(kind=FULL, parts=attending + feed), Layer(kind=LINEAR, parts=parts, state_values=state)]
    outside = ends(size, tied=tied(reader), norm=1)
    shape = Shape(label=f"full and mamba2 side by side in {size.layers} layers")
    return decoder(reader, size, halves * size.layers, outside, shape)


def nemotron_h(reader: Reader, kind: str) -> Model:
    """Nemotron-H: each layer is one block only: Mamba-2, attention, a dense block or a mixture (arXiv 2504.03624).

    The pattern says which: ``M``, ``*``, ``-`` and ``E``. Experts are not
    gated and may work in a narrower space, with a projection there and back.
    """
    pattern = reader.text("hybrid_override_pattern") or _named_pattern(reader)
    if not pattern:
        reader.missing("hybrid_override_pattern", "a text with M, *, - or E for each layer")
    size = replace(sizes(reader, width=0, layers=len(pattern)), layers=len(pattern))
    parts, state = mamba2(reader, size.hidden)
    norm = Account(norms=size.hidden)
    count = _latent_experts(reader) if "E" in pattern else Count(0, 0, 0, 0)
    plain = Account(mlp=mlp(size.hidden, size.width, gated=False, bias=reader.flag("mlp_bias")))
    blocks = {
        "M": Layer(kind=LINEAR, parts=parts + norm, state_values=state),
        "*": Layer(kind=FULL, parts=attention_account(reader, size, LLAMA) + norm),
        "E": Layer(kind=NONE, parts=_narrow_mixture(reader, size.hidden, count) + norm),
        "-": Layer(kind=NONE, parts=plain + norm),
    }
    layers = [blocks.get(letter, blocks["-"]) for letter in pattern]
    made = ", ".join(f"{pattern.count(c)} {name}" for c, name in _BLOCKS.items())
    shape = Shape(gated=False, label=f"hybrid: {made}")
    if "E" in pattern:
        shape = replace(mixture_shape(reader, kind, count, []), gated=False, label=shape.label)
    return decoder(reader, size, layers, ends(size, tied=tied(reader), norm=1), shape)


_BLOCKS = {"M": "mamba2", "*": "full", "E": "moe", "-": "mlp"}
_LETTERS = {"mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "moe": "E", "mlp": "-"}


def _named_pattern(reader: Reader) -> str:
    """The pattern from a list of block names, as newer configurations write it."""
    names = reader.texts("layers_block_type") or reader.texts("layer_types")
    return "".join(_LETTERS.get(name, "-") for name in names)


def _latent_experts(reader: Reader) -> Count:
    count = experts_of(reader, Experts())
    shared = reader.count("n_shared_experts") * reader.count("moe_shared_expert_intermediate_size")
    return count._replace(shared=shared or count.shared)


def _narrow_mixture(reader: Reader, hidden: int, count: Count) -> Account:
    """Ungated experts in a space of ``moe_latent_size``; shared ones and the router see the full width."""
    latent = reader.maybe("moe_latent_size")
    each = mlp(latent or hidden, count.width, gated=False)
    there_and_back = 2 * hidden * latent if latent else 0
    shared = mlp(hidden, count.shared, gated=False) if count.shared else 0
    whole = count.experts * each + shared + router(hidden, count.experts) + there_and_back
    return Account(experts=whole, idle=(count.experts - count.used) * each)


def kimi_linear(reader: Reader, kind: str) -> Model:
    """Kimi Linear: Kimi delta attention with latent attention in every fourth layer (arXiv 2510.26692)."""
    linear = reader.section("linear_attn_config")
    size, of = replace(sizes(reader), head_dim=0), latent_sizes(reader)
    heads, width = linear.whole("num_heads"), linear.whole("head_dim")
    kernel = linear.whole("short_conv_kernel_size", default=4)
    delta = Account(mixers=delta_attention(size.hidden, heads, width, kernel))
    state = heads * width * width + 3 * heads * width * (kernel - 1)
    attending = set(linear.wholes("full_attn_layers"))
    norms = Account(norms=2 * size.hidden)
    full = Layer(kind=FULL, parts=latent_account(size, of) + norms)
    recurrent = Layer(kind=LINEAR, parts=delta + norms, state_values=state)
    mixers = [full if n + 1 in attending else recurrent for n in range(size.layers)]
    count, sparse = experts_of(reader, Experts()), sparse_layers(reader, size.layers)
    mixed = expert_account(size.hidden, count, Experts())
    if narrow := reader.maybe("routed_expert_hidden_size"):
        mixed = _narrow_gated(reader, size.hidden, narrow, count)
    dense_block = Account(mlp=mlp(size.hidden, size.width))
    feeds = [mixed if each else dense_block for each in sparse]
    shape = mixture_shape(reader, kind, count, sparse)
    text = f"{size.layers - len(attending)} linear (KDA) + {len(attending)} {label(reader)} (of {size.layers})"
    return _stacked(reader, with_head(size, of), mixers, feeds, latent_shape(shape, of, text))


def _narrow_gated(reader: Reader, hidden: int, narrow: int, count: Count) -> Account:
    """Gated experts in a narrower space, as in Kimi K3, whose class is not public: the count is near, not exact."""
    reader.remark(
        "routed_expert_hidden_size",
        f"experts in a space of {narrow}",
        "a class whose tensors are known",
        "treat the parameter count as approximate; headers of the files give the exact one",
    )
    each = mlp(narrow, count.width)
    whole = count.experts * each + mlp(hidden, count.shared) + router(hidden, count.experts) + 2 * hidden * narrow
    return Account(experts=whole, idle=(count.experts - count.used) * each)


def lfm2(reader: Reader, kind: str) -> Model:
    """LFM2: gated short convolutions with a few attention layers (class Lfm2ForCausalLM)."""
    size = _lfm2_sizes(reader)
    kernel = reader.whole("conv_L_cache", default=3)
    mixer = short_convolution(size.hidden, kernel, bias=reader.flag("conv_bias"))
    norms = Account(norms=2 * size.hidden)
    block = Account(mlp=mlp(size.hidden, size.width)) + norms
    full = Layer(kind=FULL, parts=attention_account(reader, size, STYLES["exaone4"]))
    linear = Layer(kind=LINEAR, parts=Account(mixers=mixer), state_values=size.hidden * (kernel - 1))
    kinds = layer_kinds(reader, kind, size.layers)
    attending = set(reader.wholes("full_attn_idxs"))
    if attending:
        kinds = [FULL if n in attending else LINEAR for n in range(size.layers)]
    mixers = [full if each == FULL else linear for each in kinds]
    layers = [replace(mixer, parts=mixer.parts + block) for mixer in mixers]
    return decoder(reader, size, layers, ends(size, tied=tied(reader, default=True), norm=1), Shape())


def _lfm2_sizes(reader: Reader) -> Sizes:
    """LFM2's feed-forward width: two thirds of what is written, times a factor, rounded up to a multiple."""
    size = sizes(reader, width=reader.maybe("block_ff_dim"))
    if not reader.flag("block_auto_adjust_ff_dim", default=True):
        return size
    factor = reader.table.get("block_ffn_dim_multiplier")
    width = int(2 * size.width / 3)
    width = int(factor * width) if isinstance(factor, int | float) and 0 < factor < 100 else width  # noqa: PLR2004
    multiple = reader.maybe("block_multiple_of") or 256
    return replace(size, width=multiple * -(-width // multiple))


def minimax(reader: Reader, kind: str) -> Model:
    """MiniMax-Text-01: lightning attention with ordinary attention in some layers, all mixtures (arXiv 2501.08313)."""
    size = sizes(reader)
    width = size.heads * size.head_dim
    lightning = Account(mixers=size.hidden * 4 * width + width * size.hidden, norms=width)
    norms = Account(norms=2 * size.hidden)
    full = Layer(kind=FULL, parts=attention_account(reader, size, STYLES["mistral"]))
    linear = Layer(kind=LINEAR, parts=lightning, state_values=size.heads * size.head_dim**2)
    listed = reader.wholes("attn_type_list")
    kinds = [FULL if n else LINEAR for n in listed[: size.layers]] or layer_kinds(reader, kind, size.layers)
    mixers = [full if each == FULL else linear for each in kinds]
    count = experts_of(reader, Experts())
    feeds = [expert_account(size.hidden, count, Experts()) + norms] * size.layers
    return _stacked(reader, size, mixers, feeds, mixture_shape(reader, kind, count, [True] * size.layers))


def state_space(reader: Reader, kind: str) -> Model:
    """Mamba and Mamba-2: nothing but state-space layers, with one norm each (arXiv 2312.00752, 2405.21060)."""
    hidden, count = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS)
    parts, state = mamba2(reader, hidden) if kind == "mamba2" else mamba(reader, hidden)
    size = Sizes(
        hidden=hidden, layers=count, heads=0, kv_heads=0, head_dim=0, width=0, vocabulary=reader.whole("vocab_size")
    )
    layers = [Layer(kind=LINEAR, parts=parts + Account(norms=hidden), state_values=state)] * count
    outside = ends(size, tied=tied(reader, default=kind != "mamba2"), norm=1)
    return decoder(reader, size, layers, outside, Shape(label=f"{kind}: no attention"))


def _stacked(
    reader: Reader,
    size: Sizes,
    mixers: Sequence[Layer],
    feeds: Sequence[Account],
    shape: Shape,
) -> Model:
    """A decoder whose layers are a mixer and a feed-forward block each."""
    layers = [replace(mixer, parts=mixer.parts + feed) for mixer, feed in zip(mixers, feeds, strict=False)]
    return decoder(reader, size, layers, ends(size, tied=tied(reader), norm=1), shape)


TYPES: dict[str, Callable[[Reader, str], Model]] = {
    "qwen3_next": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_5_moe_text": qwen3_next,
    "jamba": jamba,
    "bamba": bamba,
    "granitemoehybrid": bamba,
    "falcon_h1": falcon_h1,
    "nemotron_h": nemotron_h,
    "kimi_linear": kimi_linear,
    "lfm2": lfm2,
    "minimax": minimax,
    "mamba": state_space,
    "falcon_mamba": state_space,
    "mamba2": state_space,
}
"""Every type of hybrid that is known."""
