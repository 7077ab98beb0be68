"""Training terms: what one micro-batch asks of each resource of one card."""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.weights import is_encoder
from rackrate.speed import mechanisms
from rackrate.speed.communication import all_reduce_s, gather_s
from rackrate.speed.decode import ACTIVATION_BYTES, launch_s
from rackrate.speed.flops import (
    attention_training_flop_per_token,
    head_params,
    matrix_training_flop_per_token,
    trainable_params,
)
from rackrate.speed.network import NETWORK_SHARE, crossing_s, crossings, machine_gpus
from rackrate.speed.replica import STREAM_SHARE, Replica, is_packed, routed_active_params
from rackrate.speed.sustained import Sustained
from rackrate.values import replace
from rackrate.workload.workload import Checkpointing, Training, Workload

ELEMENTWISE_BYTES = 380.0
"""Bytes that norms, activations, rotations and residuals move for each token, layer and hidden unit, both ways.

About 34 bytes are stored for the backward pass (Korthikanti et al., arXiv
2205.05198, equation 1) and each is written and read by several kernels in both
passes; fitted (tools/rate_numbers.csv). Small hidden sizes feel it most.
"""

COMPILED_SHARE = 0.25
"""Of ELEMENTWISE_BYTES, what torch.compile leaves: one kernel for a chain of operations.

Llama-3.2-3B on A100: 7,075 to 8,998 tokens/s (pytorch/torchtune README); FLUX.1 on H100: 6.6 to 4.2 s an image
(sayakpaul/diffusers-torchao README).
"""

LINEAR_LAYER_TIMES = 3.0
"""Element-wise traffic of a linear-attention or state-space layer over a plain one's: its inner width is twice the
hidden size (Mamba-2, arXiv 2405.21060, section 7: expansion 2) beside the hidden states themselves."""

SCORE_BYTES = 37.0
"""Bytes of a score of attention that is not flash, both ways: fitted (tools/rate_numbers.csv).

Written, scaled, masked, softmax, dropped out and read in 16 bits forward, the
same backward: 9 kernels of 4 bytes.
"""

ATTENTION_SHARE = 0.43
"""Of the sustained rate, what flash attention reaches forward and backward, exponentials not counted: fitted.

(FlashAttention-2, arXiv 2307.08691, section 4: 50-73 % of the peak of A100.)
"""

OLD_ATTENTION_ON_HOPPER = 0.5
"""What FlashAttention-2 reaches on Hopper, whose new matrix instructions it does not use, over FlashAttention-3.

35 % against 75 % of the peak (FlashAttention-3, arXiv 2407.08608, abstract).
"""

ROUTED_BYTES = 16.0
"""Bytes moved for each copy of a token that goes to an expert, and hidden unit: sorted and put back, both ways."""

LOGIT_BYTES = 16.0
"""Bytes moved for each token and vocabulary entry: logits in 16 and 32 bits, softmax, gradient."""

ADAPTER_LAUNCHES = 2.0
"""Kernels of a layer with adapters, relative to the plain layer: each target gets two small products more.

LoRA with PEFT takes at least 1.2 ms a layer and pass on A100 servers (QwenLM/Qwen README, profiles of 1.8B, 7B and
14B at 256 tokens), where plain eager layers take 0.6.
"""

ADAPTER_MOVES = 9.0
"""Times that an adapter's products move each value of its matrix's input and output, in the adapter's type.

Forward the input is read (for FP32 adapters it is cast and dropped out first)
and the output added; backward their gradients likewise. Counted in
huggingface/peft src/peft/tuners/lora/layer.py.
"""

NETWORK_BYTES_PER_S = 40e9
"""All-to-all between machines, a card: 80 % of a 400 Gbit/s port (NVIDIA DGX H100 user guide; deepseek-ai/DeepEP)."""

_HOPPER = (9, 0)
_MACHINE_CARDS = 8
_RACK_CARDS = 72  # GB200 and GB300 NVL72
_SHARDS_WEIGHTS = 3  # ZeRO stage


def passes(training: Training) -> int:
    """Forward passes' worth of work: forward, backward (two) and, under full checkpointing, forward again."""
    return 4 if training.checkpointing is Checkpointing.FULL else 3


def tokens_in_micro_batch(replica: Replica, training: Training) -> float:
    """Tokens of one micro-batch that a card of the replica sees (context parallelism shares them)."""
    return training.micro_batch * training.sequence_tokens / replica.layout.context


def token_layers(model: Model) -> float:
    """Layers that element-wise work is done in; hybrid models list mixers and MLPs apart, so mixers are counted."""
    if not model.layers_linear:
        return float(model.layers or 0)
    return (model.layers_full or 0) + (model.layers_windowed or 0) + LINEAR_LAYER_TIMES * model.layers_linear


def stages_s(replica: Replica, training: Training) -> float:
    """What a stage of a pipeline sends to the next machine and back in a micro-batch: activations and their gradients.

    Not hidden: the stage that receives has nothing else to do in the plain schedule (arXiv 2104.04473, section 2.2).
    Between cards of one machine it is left out.
    """
    if not crossings(replica.layout):
        return 0.0
    payload = tokens_in_micro_batch(replica, training) * (replica.model.hidden_size or 0) * ACTIVATION_BYTES
    return 2 * crossing_s(replica.layout, replica.network, payload)


def expert_layers(model: Model) -> float:
    """Layers with routed experts."""
    if not model.experts:
        return 0.0
    return float(model.layers_linear or (model.layers or 0) - (model.dense_layers_first or 0))


def matrices_s(replica: Replica, workload: Workload, training: Training, card: Sustained) -> float:
    """Matrix products: those of experts in groups, the output head in 16 bits, the rest in the workload's arithmetic.

    ``tokens x FLOPs / rate`` each, over the cards that divide the products.
    """
    model, layout = replica.model, replica.layout
    once = matrix_training_flop_per_token(workload, training) / replica.multiplied_params
    head = 0.0 if is_encoder(model) else head_params(model)
    routed = routed_active_params(model)
    dense = max(0.0, replica.multiplied_params - head - routed)
    rate = replica.stack_share * replica.policy.train_flop
    seconds = (dense + routed / mechanisms.GROUPED_SHARE) / card.flop_per_s + head / card.half_flop_per_s
    tokens = tokens_in_micro_batch(replica, training)
    return tokens * once * seconds / (rate * layout.tensor * layout.pipeline)


def attention_s(replica: Replica, training: Training, card: Sustained) -> float:
    """Scores and weighted values in 16 bits, and an exponential for each score, forward and again backward.

    Products and exponentials take turns in one kernel (FlashAttention-3, arXiv
    2407.08608, section 3.1), so that their times add.
    """
    if training.checkpointing is Checkpointing.SELECTIVE and not stores_scores(replica, training):
        training = replace(training, checkpointing=Checkpointing.NONE)  # flash attention keeps nothing to make again
    each = attention_training_flop_per_token(replica.model, training)
    return attended_s(replica, training, card, tokens_in_micro_batch(replica, training) * each)


def attended_s(replica: Replica, training: Training, card: Sustained, flop: float) -> float:
    """Seconds of ``flop`` of attention and of its exponentials."""
    model, layout = replica.model, replica.layout
    if model.head_dim is None:
        return 0.0
    share = ATTENTION_SHARE * replica.stack_share
    if replica.accelerator.compute_capability == _HOPPER and not replica.policy.hopper_attention:
        share *= OLD_ATTENTION_ON_HOPPER
    again = passes(training) - 1
    pairs = flop / (2 * (model.head_dim + (model.mla_v_head_dim or model.head_dim)) * passes(training))
    busy = flop / (card.half_flop_per_s * share) + again * pairs / card.exps_per_s
    return busy / (layout.tensor * layout.pipeline)


def stream_s(replica: Replica, workload: Workload, training: Training) -> float:
    """Element-wise work, scores that are stored, copies for experts, the loss, and packed weights expanded."""
    model, layout = replica.model, replica.layout
    hidden = model.hidden_size or 0
    again = passes(training) / 3
    each = ELEMENTWISE_BYTES * again * token_layers(model) * hidden + _adapter_bytes(replica, workload, training)
    each *= COMPILED_SHARE if training.compiled else 1.0
    each += ROUTED_BYTES * again * (model.experts_per_token or 0) * expert_layers(model) * hidden
    each += 0.0 if is_encoder(model) else LOGIT_BYTES * (model.vocab_size or 0)
    if stores_scores(replica, training):
        each += SCORE_BYTES * replica.layers * (model.attention_heads or 0) * training.sequence_tokens
    streamed = tokens_in_micro_batch(replica, training) * each / (layout.tensor * layout.pipeline)
    seconds = streamed / (replica.rates.bandwidth_bytes_per_s * STREAM_SHARE)
    if is_packed(replica.weights):
        seconds += (passes(training) - 1) * replica.expansion_s / layout.pipeline
    return seconds


def _adapter_bytes(replica: Replica, workload: Workload, training: Training) -> float:
    """Bytes that adapters move for each token, beside what their matrices do."""
    if not workload.task.trains_adapters or not training.lora_rank or replica.trains is None:
        return 0.0
    widths = trainable_params(workload, training) / training.lora_rank
    return ADAPTER_MOVES * replica.trains.adapter_bytes * widths


def stores_scores(replica: Replica, training: Training) -> bool:
    """Whether attention writes its scores to memory."""
    engines = replica.trains.attention if replica.trains is not None else ""
    return (training.attention or engines) == "eager"


def launching_s(replica: Replica, workload: Workload, training: Training) -> float:
    """Host time of all passes of one stage."""
    kernels = ADAPTER_LAUNCHES if workload.task.trains_adapters else 1.0
    return passes(training) * launch_s(replica) * kernels / replica.layout.pipeline


def tensor_s(replica: Replica, training: Training) -> float:
    """Tensor-parallel all-reduces: two a layer forward and two backward (arXiv 1909.08053), and when recomputed.

    Halves of long activations are reduced while the next product works, so that
    the whole bus bandwidth counts, unlike in decoding.
    """
    payload = tokens_in_micro_batch(replica, training) * (replica.model.hidden_size or 0) * ACTIVATION_BYTES
    each = all_reduce_s(replica.tensor_link, replica.layout.tensor, payload)
    return (passes(training) - 1) * 2 * mixers(replica.model) * each / replica.layout.pipeline


def mixers(model: Model) -> int:
    """Layers with attention or a state-space mixer."""
    if not model.layers_linear:
        return model.layers or 0
    return (model.layers_full or 0) + (model.layers_windowed or 0) + model.layers_linear


def experts_s(replica: Replica, training: Training) -> float:
    """All-to-all of tokens to their experts and back, both ways: ``4 k h`` values a layer and token.

    Inside a machine or rack each copy goes by its link; between machines a
    token goes once to each that it needs (deepseek-ai/DeepEP), and the slower
    of the two decides.
    """
    model, layout = replica.model, replica.layout
    if layout.expert <= 1 or not model.experts_per_token:
        return 0.0
    tokens = tokens_in_micro_batch(replica, training) / (layout.tensor * layout.pipeline)
    copy = 4 * tokens * expert_layers(model) * (model.hidden_size or 0) * ACTIVATION_BYTES
    near = min(layout.expert, machine_cards(replica))
    inside = copy * model.experts_per_token * (near - 1) / near / replica.link.bytes_per_s
    others = layout.expert / machine_cards(replica) - 1
    if others <= 0:
        return inside
    reached = others * (1 - (1 - 1 / (others + 1)) ** model.experts_per_token)
    return max(inside, copy * reached / network_bytes_per_s(replica))


def network_bytes_per_s(replica: Replica) -> float:
    """What one card gets of the network between machines."""
    if replica.layout.nodes <= 1:
        return NETWORK_BYTES_PER_S
    return NETWORK_SHARE * replica.network.bytes_per_s / machine_gpus(replica.layout)


def machine_cards(replica: Replica) -> int:
    """Cards that the fast link joins: a rack of superchips behind switches, else one machine."""
    if replica.layout.nodes > 1:
        return machine_gpus(replica.layout)
    card = replica.accelerator
    return _RACK_CARDS if card.nvswitch and card.form_factor == "superchip" else _MACHINE_CARDS


def shard_s(replica: Replica, workload: Workload, training: Training) -> float:
    """ZeRO stage 3 (FSDP): weights gathered forward and backward, gradients scattered.

    About ``3 x bytes`` of the weights a micro-step where all are trained
    (Rajbhandari et al., arXiv 1910.02054, section 7.2).
    """
    layout = replica.layout
    if layout.zero_stage < _SHARDS_WEIGHTS:
        return 0.0
    cards = layout.tensor * layout.pipeline
    gradients = 2 * trainable_params(workload, training) / cards
    weights = gather_s(replica.link, layout.shards, replica.read_bytes / cards)
    return 2 * weights + gather_s(replica.link, layout.shards, gradients)
