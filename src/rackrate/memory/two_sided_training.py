"""Training of encoder-decoders: activations of both sides in one micro-batch, and the loss."""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.memory.activations import checkpoint_bytes_per_token, running_bytes_per_token
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.layer_pass import FP32_BYTES
from rackrate.memory.phases import part
from rackrate.memory.training_states import FORWARD, UNTIL_STEP, Setting
from rackrate.memory.traits import biases_scores
from rackrate.memory.two_sided_activations import BIAS_BYTES, ends, sides
from rackrate.memory.weights import attention_params, matrices_per_mlp
from rackrate.workload.workload import Checkpointing


def kept_bytes(s: Setting) -> tuple[float, float]:
    """What both sides keep of a micro-batch after the forward pass, and one layer while it runs backward.

    With checkpointing each layer keeps its input, and the decoder's share one
    copy of the encoder's output; a layer of the decoder makes keys and values of
    it again. The layer is the side's that holds more.
    """
    model, how = s.workload.model, s.kept
    encoders, decoders = model.encoder_layers or 0, model.decoder_layers or 0
    each, (front, behind) = sides(model, how), ends(model, how)
    encoder, decoder = each.encoder * s.sources, each.decoder * s.tokens + each.crossing * s.sources
    outside = front * s.sources + behind * s.tokens
    running = (running_bytes_per_token(model, how) + _branch_bytes(s)) * max(s.sources, s.tokens)
    if s.training.checkpointing is Checkpointing.NONE:
        return encoders * encoder + decoders * decoder + outside, max(encoder, decoder) + running
    inputs = (model.hidden_size or 0) * how.element_bytes / how.whole
    kept = inputs * (encoders * s.sources + decoders * s.tokens) + outside
    return kept, max(encoder, decoder) + running


def _branch_bytes(s: Setting) -> float:
    """The widest adapter's output in its own type beside its base's (peft lora/layer.py, Linear.forward)."""
    model, how = s.workload.model, s.kept
    wide = "up" in how.adapters and how.adapter_bytes > how.element_bytes
    return (model.intermediate_size or 0) / how.tensor * how.adapter_bytes if wide else 0.0


def tied_parts(s: Setting, layer: float, growing: float) -> list[Component]:
    """Three gradients of one table when the decoder's backward pass ends, while the encoder still keeps all.

    The head's, the decoder's embedding's and their sum (pytorch/pytorch
    torch/csrc/autograd/input_buffer.cpp), beyond all gradients and one layer.
    """
    model, how = s.workload.model, s.kept
    if not model.tie_embeddings or not s.embeddings or not growing or s.training.step_in_backward:
        return []
    decoders = model.decoder_layers or 0
    each = 2 * attention_params(model) + matrices_per_mlp(model) * (model.hidden_size or 0) * (
        model.intermediate_size or 0
    )
    made = s.weight_size * (decoders * each / s.layout.tensor + _COPIES * s.embeddings)
    front = ends(model, how)[0] * s.sources
    checkpointed = s.training.checkpointing is not Checkpointing.NONE
    kept = checkpoint_bytes_per_token(model, how) if checkpointed else sides(model, how).encoder
    more = made + front + (model.encoder_layers or 0) * kept * s.sources - growing - layer
    return [part("tied_gradients", more, Phase.BACKWARD)] if more > 0 else []


_COPIES = 3


def biased_parts(s: Setting) -> list[Component]:
    """What T5's biases add for every pair of positions: of the encoder, of the decoder, and across."""
    model = s.workload.model
    if not biases_scores(model):
        return []
    batch, heads = s.training.micro_batch, (model.attention_heads or 0) / s.layout.tensor
    read, written = s.training.read_tokens, s.training.written_tokens
    pairs = (model.encoder_layers or 0) * read**2 + (model.decoder_layers or 0) * written * (written + read)
    if s.training.checkpointing is not Checkpointing.NONE:
        pairs = max(read**2, written * (written + read))
    size = s.element_size / 2 * batch * heads * pairs
    when = FORWARD if s.training.checkpointing is Checkpointing.NONE else (Phase.BACKWARD,)
    return [part("biased_scores", Range(*(each * size for each in BIAS_BYTES)), *when)]


def loss_of_both(s: Setting) -> list[Component]:
    """Logits of what is written, whose loss is taken in the type that they come in.

    ``CrossEntropyLoss`` of the model itself (modeling_whisper.py, modeling_bart.py,
    modeling_t5.py): a log-softmax is kept, and its backward pass makes two more; the
    logits themselves are gone by then. Autocast widens all three to FP32.
    """
    model = s.workload.model
    size = s.element_size if s.pure or s.workload.task.trains_adapters else FP32_BYTES
    entries = s.tokens * (model.vocab_size or 0) / s.layout.tensor
    return [part("logits", size * entries, *FORWARD), part("loss_gradient", 2 * size * entries, Phase.LOSS)]


def spectrogram_parts(s: Setting) -> list[Component]:
    """Frames of sound, which the training loop holds."""
    model = s.workload.model
    if not model.mel_bins:
        return []
    return [part("spectrogram", float(2 * s.sources * model.mel_bins * s.element_size), *UNTIL_STEP)]
