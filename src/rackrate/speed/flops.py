"""FLOPs: the arithmetic of one token, forward and in training."""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.adapters import adapter_params
from rackrate.memory.weights import is_encoder
from rackrate.speed.sides import training_sides
from rackrate.values import replace
from rackrate.workload.workload import Checkpointing, Training, Workload


def multiplied_params(model: Model) -> float:
    """Parameters that one token is multiplied with: the active ones less the input embedding.

    The input embedding is looked up, not multiplied; a tied table is multiplied
    as the output head and stays (Kaplan et al., arXiv 2001.08361, section 2.1;
    Hoffmann et al., arXiv 2203.15556, appendix F).
    """
    looked_up = 0.0 if model.tie_embeddings else model.embedding_params / 2
    return model.params_active - looked_up


def head_params(model: Model) -> float:
    """Parameters of the output head, vocabulary x hidden size (0 where the sizes are not known)."""
    return float((model.vocab_size or 0) * (model.hidden_size or 0))


def attended_layer_tokens(model: Model, tokens: float) -> float:
    """Layers x the tokens that each attends to: full layers see all, windowed ones their window, linear ones none."""
    windowed = model.layers_windowed or 0
    full = model.layers_full if model.layers_full is not None else (model.layers or 0) - windowed
    return full * tokens + windowed * min(tokens, model.window or tokens)


def attention_flop_per_token(model: Model, attended_tokens: float) -> float:
    """FLOPs of scores and weighted values of one token that attends to ``attended_tokens``.

    ``2 heads (d_qk + d_v) s`` a layer, which is 4 d s for ordinary heads (the
    attention term of PaLM, arXiv 2204.02311, appendix B). Under a causal mask
    the mean of s is half the sequence.
    """
    if model.attention_heads is None or model.head_dim is None:
        return 0.0
    value_dim = model.mla_v_head_dim or model.head_dim
    return 2 * model.attention_heads * (model.head_dim + value_dim) * attended_layer_tokens(model, attended_tokens)


def model_flop_per_token(workload: Workload, training: Training) -> float:
    """FLOPs that training needs per token, recomputation left out (the numerator of MFU).

    All parameters: forward and twice that backward, ``6 N + 6 L d s`` (causal;
    PaLM, arXiv 2204.02311, appendix B, writes the uncausal 12 L d s). Adapters:
    the frozen weights pass gradients on but get none, ``4 N + 6 L d s``, and the
    adapters add 6 for each of theirs (LoRA, arXiv 2106.09685, section 4).
    """
    plain = replace(training, checkpointing=Checkpointing.NONE)
    if workload.model.is_encoder_decoder:
        return _two_sided_flop(workload, plain) / training.sequence_tokens
    return matrix_training_flop_per_token(workload, plain) + attention_training_flop_per_token(workload.model, plain)


def _two_sided_flop(workload: Workload, training: Training) -> float:
    """FLOPs of a sequence of an encoder-decoder: what is read, what is written, and attention across."""
    sides = training_sides(workload, training)
    each = (
        run.sequence_tokens
        * (matrix_training_flop_per_token(side, run) + attention_training_flop_per_token(side.model, run))
        for side, run in sides
    )
    return sum(each) + training.written_tokens * crossing_flop_per_token(sides[1][0].model, training)


def crossing_flop_per_token(decoder: Model, training: Training) -> float:
    """FLOPs of a written token's attention to all that is read, three passes' worth or four (arXiv 1706.03762)."""
    passes = 4 if training.checkpointing is Checkpointing.FULL else 3
    return passes * attention_flop_per_token(decoder, training.read_tokens)


def matrix_training_flop_per_token(workload: Workload, training: Training) -> float:
    """FLOPs of matrix products that are done per token, forward and backward: ``6 N`` (adapters ``4 N``).

    Full checkpointing repeats the forward pass, ``+ 2 N`` (x 4/3 in full training;
    Korthikanti et al., arXiv 2205.05198, section 5).
    """
    forward = 2 * multiplied_params(workload.model)
    again = forward if training.checkpointing is Checkpointing.FULL else 0.0
    if workload.task.trains_adapters:
        return 2 * forward + 6 * trainable_params(workload, training) + again
    return 3 * forward + again


def attention_training_flop_per_token(model: Model, training: Training) -> float:
    """FLOPs of attention that are done per token: three forward passes' worth, four when recomputed.

    A token attends to half the sequence in the mean, in encoders to all of it.
    Selective checkpointing recomputes just this part (arXiv 2205.05198, section 5).
    """
    passes = 3 if training.checkpointing is Checkpointing.NONE else 4
    attended = training.sequence_tokens / (1 if is_encoder(model) else 2)
    return passes * attention_flop_per_token(model, attended)


def trainable_params(workload: Workload, training: Training) -> float:
    """Parameters that get gradients: all of the model's, or the adapters'."""
    if not workload.task.trains_adapters:
        return float(workload.model.params_total)
    return adapter_params(workload.model, training.lora_rank, training.lora_targets)
