"""Stand-ins for what only a card can run: flash attention, fused optimizers, CUDA devices and autocast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch._dynamo  # reads torch.cuda's functions when it is first needed, which must not be while they are others
from torch.nn import functional
from torch.optim import optimizer
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils

from rackrate.memory.estimate_types import Phase
from rackrate.memory.simulation.autocast import Autocast
from rackrate.memory.simulation.ledger import DEVICE
from rackrate.memory.simulation.trace import Trace

ATTENTION = "rackrate"
"""The name of the attention below in transformers' registry (a name with `flash` in it is looked for on the Hub)."""


class FlashAttention(torch.autograd.Function):
    """Attention that never stores scores: keeps query, key, value, output and one FP32 number per head and token.

    Temporaries of the backward pass: an FP32 accumulator of the queries'
    gradient, one FP32 number per head and token, and with grouped queries
    gradients of keys and values for every query head. Dao-AILab/flash-attention
    csrc/flash_attn/flash_api.cpp, mha_fwd and mha_bwd (head sizes and lengths
    that the kernel pads are not padded here).
    """

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:  # noqa: D102
        batch, heads, tokens, _ = query.shape
        out = query.new_empty((batch, tokens, heads, value.shape[-1]))
        sums = query.new_empty((batch, heads, tokens), dtype=torch.float32)
        ctx.save_for_backward(query, key, value, out, sums)
        return out

    @staticmethod
    def backward(ctx: Any, _gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:  # noqa: D102
        query, key, value, _, sums = ctx.saved_tensors
        accumulator = torch.empty_like(query, dtype=torch.float32)
        row_sums = torch.empty_like(sums)
        grouped = key.shape[1] != query.shape[1]
        wide = [each.new_empty((*query.shape[:2], *each.shape[2:])) for each in (key, value)] if grouped else []
        gradients = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
        del accumulator, row_sums, wide
        return gradients


def attention_of_transformers(
    _module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, _mask: Any, **_options: Any
) -> tuple[torch.Tensor, None]:
    """Flash attention behind transformers' interface: (batch, heads, tokens, width) in, tokens before heads out.

    By way of torch's own function, which ``Card`` and autocast know.
    """
    return functional.scaled_dot_product_attention(query, key, value).transpose(1, 2), None


def no_mask(*_args: Any, **_options: Any) -> None:
    """Flash attention takes no mask where no token is padding."""


class Card(TorchFunctionMode):
    """Lets a program that asks for a CUDA device run on the meta device, and marks its loss.

    ``scaled_dot_product_attention`` becomes flash attention, as on a card.
    """

    def __init__(self, trace: Trace, autocast: Autocast) -> None:
        super().__init__()
        self._trace = trace
        self._autocast = autocast

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one function of torch, on the meta device where a card was asked for."""
        named = dict(kwargs or {})
        if "device" in named:
            named["device"] = _device(named["device"])
        if func is torch.Tensor.cuda:
            return args[0].to(DEVICE)
        if func is torch.Tensor.to or func is torch.device:
            args = [args[0], *map(_device, args[1:])] if func is torch.Tensor.to else [*map(_device, args)]
        if func is functional.dropout and args and args[0].device.type == DEVICE:
            return _dropout(*args, **named)
        if func is _SDPA and args and args[0].device.type == DEVICE:
            return self.attention(*args, **named)
        args = self._autocast.cast(func, args)
        if getattr(func, "__name__", "") in _LOSSES and self._trace.step:
            with self._trace.during(Phase.LOSS):
                return func(*args, **named)
        return func(*args, **named)

    def attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *more: Any, **named: Any) -> Any:
        """Flash attention where the tensors are on the card."""
        if query.device.type != DEVICE:
            return _SDPA(query, key, value, *more, **named)
        return _sdpa(*self._autocast.cast(_SDPA, (query, key, value)))

    def linear(self, *args: Any, **named: Any) -> Any:
        """A linear layer, in the type that autocast wants."""
        return _LINEAR(*self._autocast.cast(_LINEAR, args), **named)


def _dropout(values: torch.Tensor, *more: Any, **named: Any) -> torch.Tensor:
    """Dropout as a card does it: a byte of mask for each value (aten/src/ATen/native/Dropout.cpp, native_dropout)."""
    how = {**_DROPOUT, **dict(zip(_DROPOUT, more, strict=False)), **named}
    if not how["training"] or not how["p"]:
        return values
    dropped = torch.native_dropout(values, how["p"], how["training"])[0]
    return values.copy_(dropped) if how["inplace"] else dropped


_DROPOUT: dict[str, Any] = {"p": 0.5, "training": True, "inplace": False}
"""What torch.nn.functional.dropout takes for granted."""


_SDPA, _LINEAR = functional.scaled_dot_product_attention, functional.linear

_LOSSES = frozenset({
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "ctc_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "margin_ranking_loss",
    "triplet_margin_loss", "gaussian_nll_loss", "poisson_nll_loss", "hinge_embedding_loss", "soft_margin_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
})  # fmt: skip
"""Functions of torch.nn.functional that compute a loss."""


def _device(value: Any) -> Any:
    """The meta device in place of a card; anything else as it is."""
    if isinstance(value, torch.device):
        return torch.device(DEVICE) if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return DEVICE
    return value


def _sdpa(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Flash attention behind the interface of torch.nn.functional; other ranks than four are folded into it."""
    lead = query.shape[:-3]
    folded = [each.reshape(-1, *each.shape[-3:]) for each in (query, key, value)]
    out = FlashAttention.apply(*folded).transpose(1, 2)
    return out.reshape(*lead, *out.shape[1:])


def _nothing() -> Callable[..., None]:
    """A function that does nothing, a new one for each name (torch._dynamo keeps a table of functions)."""

    def nothing(*_args: Any, **_named: Any) -> None:
        """A card does this; there is none."""

    return nothing


_CUDA: dict[str, Any] = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "is_bf16_supported": lambda *_args, **_named: True,
    "set_device": _nothing(),
    "synchronize": _nothing(),
    "empty_cache": _nothing(),
    "reset_peak_memory_stats": _nothing(),
    "manual_seed": _nothing(),
    "manual_seed_all": _nothing(),
}
"""What programs ask of torch.cuda before they use a card."""


def _not_compiled(model: Any = None, **_options: Any) -> Any:
    """torch.compile returns what it was given: what it fuses is not seen."""
    return model if model is not None else _not_compiled


@contextmanager
def like_a_card(card: Card) -> Iterator[None]:
    """Optimizers and gradient clipping choose their multi-tensor form, and may be fused, as on CUDA.

    PyTorch takes the multi-tensor form by default for weights on CUDA alone
    (torch/optim/optimizer.py, _default_to_fused_or_foreach). ``card`` also
    stays in force in the backward pass, where layers may be computed again.
    """
    foreach, fused = [DEVICE, "cuda"], [DEVICE, "cuda", "cpu"]
    engine = torch.autograd._engine_run_backward

    def run_backward(*args: Any, **named: Any) -> Any:
        with card:
            return engine(*args, **named)

    with ExitStack() as patches:
        for name, answer in _CUDA.items():
            patches.enter_context(patch.object(torch.cuda, name, answer))
        patches.enter_context(patch.object(torch, "compile", _not_compiled))
        # Functions written in Python, such as multi_head_attention_forward, call these where no mode sees it.
        patches.enter_context(patch.object(functional, "scaled_dot_product_attention", card.attention))
        patches.enter_context(patch.object(functional, "linear", card.linear))
        patches.enter_context(patch.object(torch.autograd, "_engine_run_backward", run_backward))
        for place in (optimizer, _foreach_utils):
            patches.enter_context(patch.object(place, "_get_foreach_kernels_supported_devices", lambda: foreach))
        patches.enter_context(patch.object(optimizer, "_get_fused_kernels_supported_devices", lambda: fused))
        yield
