"""One replica: everything that the times of its steps are computed from."""

from __future__ import annotations

import math

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.engine import Engine
from rackrate.facts.engine_speed import EXPECTED, Host, SpeedPolicy, Times
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.memory.drafts import draft_workload
from rackrate.memory.encoder_decoder import source_copies
from rackrate.memory.kv_cache import layer_bytes_per_token
from rackrate.memory.stages import Stage
from rackrate.memory.towers import params_inside
from rackrate.memory.weights import parameter_groups, weight_bytes
from rackrate.speed import mechanisms
from rackrate.speed.communication import Link, link
from rackrate.speed.flops import multiplied_params
from rackrate.speed.network import Group, group_link, network_of
from rackrate.speed.roofline import Rates, rates
from rackrate.speed.sides import PLAIN, QUANTISED, Launches, Side, decoder_side, eager_launches, encoder_side
from rackrate.speed.towers import image_flop_per_token
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.network import Network
from rackrate.workload.workload import Workload

STACK_SHARE = {"AMD": 0.5}
"""What training reaches on another maker's cards, relative to NVIDIA's: as serving did in 2024."""

ROCM_MATMUL = 0.65
"""The best matrix product over the published peak, relative to NVIDIA's cards.

MI300X 668 of 1,307 TFLOP/s, MI325X 785, MI355X 1,565 of 2,300, where A100 and H100
reach 0.87 and 0.80 (stas00/ml-engineering compute/accelerator).
"""

NO_ACCEPTANCE = "how many guesses of the draft model are taken depends on the texts: give serving.acceptance_rate"

STREAM_SHARE = 0.8
"""Of the memory bandwidth, what streaming kernels reach (stas00/ml-engineering; RRZE-HPC/gpu-benches gpu-stream)."""

_ADA, _HOPPER = 89, 90
_BLOCKED = "fp8-block"
_DESKTOP = ("GeForce", "RTX", "TITAN", "Quadro", "Jetson")

_WHOLE_BYTE = 8  # bits a weight; formats below it are unpacked by shifts and tables


class Replica(Value, frozen=True, kw_only=True):
    """A model in one engine on the cards of one replica (``tensor`` x ``pipeline`` of them).

    ``read_bytes``: weights that a pass reads when all experts are touched, the
    input embedding left out; ``expert_bytes``: the routed experts among them.
    ``tensor_link`` joins the cards of a tensor group, which are placed next to
    each other (on a bridge where they fit), ``link`` those that share a batch; ``network`` joins machines.
    ``cache_layer_bytes``: KV cache of one token in one layer on one card.
    ``generation``: of NVIDIA's cards, the compute capability times ten (0: another
    maker's). ``server_host``: the card sits in a server, whose cores are slower
    one by one than a desktop's. ``kernel``: what this format's kernels reach
    relative to 16-bit ones. ``vector_kernels``: small batches are multiplied outside the
    matrix units. ``multiplied_params`` are those of the text model; ``image_flop``:
    what the vision tower adds to a prompt token on average. ``trains``: how the engine trains, where it does.
    ``times``: what a measurement on this machine says of each phase.

    Of an encoder-decoder this is the decoder, which writes ``beams`` for each
    sequence and keeps ``source_copies`` of what was made of ``source_tokens``;
    ``encoder`` is the other side, which reads. A ``draft`` model on the same cards
    makes ``guesses`` before each step, each taken with the chance ``acceptance_rate``.
    ``launches``: kernels of a pass, relative to a decoder alone.
    ``refills``: a request that ends makes room for the next (continuous batching).
    """

    model: Model
    weights: WeightFormat
    accelerator: Accelerator
    policy: SpeedPolicy
    trains: TrainingPolicy | None
    layout: Layout
    rates: Rates
    link: Link
    tensor_link: Link
    network: Network
    read_bytes: float
    expert_bytes: float
    cache_layer_bytes: float
    vendor: str
    generation: int
    server_host: bool
    kernel: float
    vector_kernels: bool
    multiplied_params: float
    image_flop: float = 0.0
    beams: int = 1
    source_tokens: int = 0
    source_copies: int = 1
    encoder: Replica | None = None
    draft: Replica | None = None
    guesses: int = 0
    acceptance_rate: float = 0.0
    launches: Launches = PLAIN
    refills: bool = True
    times: Times = EXPECTED

    @property
    def tokens_per_step(self) -> float:
        """Tokens that a step adds to a sequence: 1, or with a draft model ``(1 - a^(k+1)) / (1 - a)``."""
        return expected_tokens(self.guesses, self.acceptance_rate) if self.draft is not None else 1.0

    @property
    def reader(self) -> Replica:
        """The side that reads prompts: the encoder, or the model itself."""
        return self.encoder or self

    @property
    def layers(self) -> int:
        """Layers of the model (0 where not known)."""
        return self.model.layers or 0

    @property
    def stack_share(self) -> float:
        """What software reaches in training on this maker's cards, relative to NVIDIA's."""
        return STACK_SHARE.get(self.vendor, 1.0)

    @property
    def eager(self) -> bool:
        """Whether the host launches kernels one by one while the card works."""
        return self.policy.host is Host.EAGER

    @property
    def reading_bytes_per_s(self) -> float:
        """Memory bandwidth of the tensor group while it reads weights."""
        share = mechanisms.FITTED.amd_memory if self.early_rocm else 1.0
        return (
            self.rates.bandwidth_bytes_per_s * self.policy.decode_bandwidth * self.kernel * share * self.layout.tensor
        )

    @property
    def early_rocm(self) -> bool:
        """Whether this is an AMD card with the kernels of 2024."""
        return self.vendor == "AMD" and self.policy.early_rocm

    @property
    def cache_share(self) -> float:
        """Of the memory bandwidth, what attention reaches while it reads the cache.

        Early kernels read keys and values once for each query head that shares them.
        """
        share = self.policy.cache_bandwidth * (mechanisms.FITTED.amd_memory if self.early_rocm else 1.0)
        if not self.early_rocm and not self.policy.cache_per_head:
            return share
        return share * min(1.0, (self.model.kv_heads or 1) / (self.model.attention_heads or 1))

    @property
    def attention_share(self) -> float:
        """What attention of prompts reaches of the products' share: less where the engine stores its scores."""
        return self.policy.attention_flop or 1.0

    @property
    def flop_per_s(self) -> float:
        """Arithmetic of the tensor group in inference (on expanded weights the products are 16-bit ones)."""
        kernel = 1.0 if self.expands else self.kernel
        found = self.rates.reached(self.policy.prefill_flop * kernel * self.generation_share)
        vector, unpack = self.rates.vector_flop_per_s, self.policy.unpack_flop
        if vector and unpack and self.rates.precision is Precision.INT8:
            found = 1 / (1 / found + 1 / (vector * unpack))
        return found * self.layout.tensor

    @property
    def half_flop_per_s(self) -> float:
        """Arithmetic of the tensor group in attention, whose products stay in 16 bits."""
        if not self.rates.is_narrow or self.vector_kernels:
            return self.flop_per_s
        return min(self.flop_per_s, self.rates.half_flop_per_s * self.policy.prefill_flop * self.layout.tensor)

    @property
    def generation_share(self) -> float:
        """What products reach on this generation of cards in this arithmetic, relative to 16-bit ones on Ampere."""
        found = mechanisms.FITTED
        if self.vendor == "AMD" and not self.vector_kernels:
            return found.amd_flop if self.early_rocm else ROCM_MATMUL
        if self.vector_kernels and self.rates.precision is Precision.FP32:
            return found.scalar_flop
        if self.vector_kernels:
            return found.old_instructions if self.generation == _HOPPER else 1.0
        return found.block_fp8 if self.weights.id == _BLOCKED else 1.0

    @property
    def expands(self) -> bool:
        """Whether all products but one-token ones work on 16-bit copies of the weights, made each time.

        NF4 (bitsandbytes functional.py, torchao dtypes/nf4tensor.py).
        """
        return self.weights.id.startswith("nf4")

    @property
    def expansion_s(self) -> float:
        """Seconds to expand all weights once: packed ones are read, 16-bit ones written and read again.

        ``(4 + bytes a weight) N / (BW share q)``, N with all experts; with q = 0.6 this is the 80 to 190 ms
        that NF4 adds to a step of Llama-2 7B and 13B on A100 40 GB (Lightning-AI/litgpt
        tutorials/quantize, finetune tables). On Ada a matrix of 16 bits is read back from
        the 48 to 96 MB of cache between cores and memory: ``2 + bytes a weight``.
        """
        params = self.multiplied_params + self.model.params_total - self.model.params_active
        copies = 1 if self.generation == _ADA else 2
        moved = (2 * copies + self.weights.bytes_per_weight) * params
        bandwidth = self.rates.bandwidth_bytes_per_s * STREAM_SHARE * self.layout.tensor
        return moved / (bandwidth * self.policy.quantised_kernel)


def replica(workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine) -> Replica | Unknown:
    """The replica that ``layout`` makes of ``accelerator``, or which fact about it is unknown."""
    model, weights = workload.model, workload.weights
    own_kernels = engine.speed.vector_kernels
    peaks = rates(accelerator, workload, half_accumulate=own_kernels, packed_int8=engine.speed.unpack_flop > 0)
    if isinstance(peaks, Unknown):
        return peaks
    cache = _cache_layer_bytes(workload, layout, engine)
    if isinstance(cache, Unknown):
        return cache
    network, early = network_of(workload, accelerator, layout), engine.speed.early_rocm
    inside = params_inside(model, workload.sight) if workload.serving is not None else 0.0
    one = Replica(
        model=model,
        weights=weights,
        accelerator=accelerator,
        policy=engine.speed,
        trains=engine.training,
        layout=layout,
        rates=peaks,
        link=(
            link(accelerator, _linked(workload, layout), early=early)
            if layout.nodes == 1
            else group_link(accelerator, layout, Group(layout.tensor, layout.shards), network, early=early)
        ),
        tensor_link=group_link(accelerator, layout, Group(1, layout.tensor), network, early=early),
        network=network,
        read_bytes=_read_bytes(model, weights) - inside * weights.bytes_per_weight,
        expert_bytes=routed_expert_params(model) * weights.bytes_per_weight,
        cache_layer_bytes=cache,
        vendor=accelerator.vendor,
        generation=10 * (accelerator.compute_capability or (0, 0))[0] + (accelerator.compute_capability or (0, 0))[1],
        server_host=not (accelerator.cooling == "active" and accelerator.product.startswith(_DESKTOP)),
        kernel=engine.speed.quantised_kernel if is_packed(weights) else 1.0,
        vector_kernels=own_kernels or weights.id.startswith("gguf"),
        multiplied_params=multiplied_params(model) - inside,
        image_flop=image_flop_per_token(workload),
        times=times_of(workload, accelerator, layout, engine),
    )
    if model.is_encoder_decoder:
        return _two_sided(one, workload, engine)
    return one if workload.serving is None or workload.serving.draft is None else _guessed(one, workload, engine)


def expected_tokens(guesses: int, acceptance_rate: float) -> float:
    """Tokens that a step adds to a sequence: ``(1 - a^(k+1)) / (1 - a)``.

    Leviathan et al. 2023, arXiv 2211.17192, equation 1: each of the k guesses is
    right with the same chance a, whatever the others; the first wrong one ends the
    step, and the model's own token follows. Text that comes in easy and hard stretches gets fewer.
    """
    if acceptance_rate >= 1:
        return 1.0 + guesses
    return (1 - acceptance_rate ** (guesses + 1)) / (1 - acceptance_rate)


def _guessed(one: Replica, workload: Workload, engine: Engine) -> Replica | Unknown:
    """``one`` with its draft model beside it, which is a replica of its own on the same cards."""
    serving, policy = workload.serving, engine.serving
    if serving is None or serving.draft is None or policy is None:
        return one
    if serving.draft.acceptance_rate is None:
        return Unknown(NO_ACCEPTANCE)
    work = draft_workload(workload, policy)
    assert work is not None
    layout = one.layout if policy.draft_stage == "split" else replace(one.layout, pipeline=1)
    draft = replica(work, one.accelerator, layout, engine)
    if isinstance(draft, Unknown):
        return draft
    unscheduled = replace(draft.policy, step_s=0.0, sequence_s=0.0)  # guesses follow each other without the scheduler
    return replace(
        one,
        draft=replace(draft, policy=unscheduled),
        guesses=serving.draft.tokens,
        acceptance_rate=serving.draft.acceptance_rate,
    )


def _linked(workload: Workload, layout: Layout) -> int:
    """Cards that exchange anything: in training all, in inference those of one replica."""
    return layout.gpus if workload.training is not None else layout.tensor * layout.pipeline


def _two_sided(one: Replica, workload: Workload, engine: Engine) -> Replica:
    """The decoder of an encoder-decoder, with its encoder beside it."""
    serving = workload.serving
    beams = serving.beams if serving is not None else 1
    reads, writes = encoder_side(one.model, one.weights), decoder_side(one.model, one.weights)

    def of(side: Side, *, decodes: bool) -> Replica:
        crossed = engine.speed.crossed_launches if decodes else 1.0
        graphs = Launches(layer=crossed * QUANTISED.get(one.weights.id, 1.0))
        return replace(
            one,
            launches=eager_launches(one.model, beams, decodes=decodes) if one.eager else graphs,
            model=side.model,
            read_bytes=side.read_bytes,
            expert_bytes=0.0,
            multiplied_params=side.multiplied_params,
        )

    both = replace(of(writes, decodes=True), encoder=of(reads, decodes=False))
    if serving is None:
        return both
    return replace(
        both,
        beams=beams,
        source_tokens=serving.prompt_tokens,
        refills=engine.serving is None or engine.serving.continuous_batching,
        source_copies=source_copies(serving, engine.serving) if engine.serving is not None else 1,
    )


def times_of(workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine) -> Times:
    """What was measured with ``engine`` on this card says of ``workload``; nothing where it was another card."""
    found = engine.calibration
    if found is None or found.accelerator != accelerator.id:
        return EXPECTED
    near = found.is_near(accelerator.id, layout.gpus, workload.model.id, workload.weights.id)
    return found.near if near else found.elsewhere


def is_packed(weights: WeightFormat) -> bool:
    """Whether kernels unpack the weights to the arithmetic's type (weight-only formats under 8 bits)."""
    return weights.computes_in is None and weights.bits_per_weight < _WHOLE_BYTE


def routed_expert_params(model: Model) -> float:
    """Parameters of all routed experts, from the total and the active count.

    ``total - active = experts x (1 - k/E)``, since a token leaves E - k of E experts out.
    """
    if not model.experts or not model.experts_per_token or model.experts_per_token >= model.experts:
        return 0.0
    return (model.params_total - model.params_active) / (1 - model.experts_per_token / model.experts)


def routed_active_params(model: Model) -> float:
    """Parameters of routed experts that one token is multiplied with."""
    if not model.experts or not model.experts_per_token:
        return 0.0
    return routed_expert_params(model) * model.experts_per_token / model.experts


def weight_bytes_touched(replica: Replica, tokens: float) -> float:
    """Weight bytes that one pass over ``tokens`` tokens reads, over all cards of the replica.

    A mixture of experts with k of E experts a token touches ``E (1 - (1 - k/E)^tokens)``
    of them if tokens choose independently and evenly. An upper bound: real
    routing repeats itself.
    """
    model = replica.model
    if not replica.expert_bytes or not model.experts or not model.experts_per_token:
        return replica.read_bytes
    untouched = math.pow(1 - model.experts_per_token / model.experts, tokens)
    return replica.read_bytes - replica.expert_bytes * untouched


def reading_s(replica: Replica, tokens: float) -> float:
    """Seconds to read the weights that a pass over ``tokens`` tokens touches."""
    return weight_bytes_touched(replica, tokens) / replica.reading_bytes_per_s


def _read_bytes(model: Model, weights: WeightFormat) -> float:
    """Bytes of the weights without the input embedding, of which a pass reads a few rows only."""
    layers = max(1, model.layers or 0)
    behind_embedding = Stage(layers=layers, of=layers, first=False, last=True)
    return weight_bytes(model, parameter_groups(model), behind_embedding, weights, ties=True)


def _cache_layer_bytes(workload: Workload, layout: Layout, engine: Engine) -> float | Unknown:
    if workload.serving is None:
        return 0.0
    padding = max(1, engine.serving.mla_cache_padding) if engine.serving else 1
    return layer_bytes_per_token(workload.model, workload.serving.cache_bits, layout.tensor, padding)
