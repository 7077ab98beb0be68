"""Autocast on the meta device, for which PyTorch has none: the casts that it makes on a card.

Which functions it casts is PyTorch's documentation, "Automatic Mixed Precision: CUDA Ops that can autocast".
Functions in Python that call others hide them, all but linear layers and attention (``kernels.like_a_card``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

_NARROW = frozenset({
    "__matmul__", "__rmatmul__", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "multi_dot",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear", "matmul",
    "mm", "mv", "prelu", "einsum", "scaled_dot_product_attention",
})  # fmt: skip
"""Run in the narrow type."""

_WIDE = frozenset({
    "__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "asin", "binary_cross_entropy_with_logits", "cosh",
    "cosine_embedding_loss", "cdist", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv",
    "exp", "expm1", "group_norm", "hinge_embedding_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10",
    "log_softmax", "log1p", "log2", "margin_ranking_loss", "mse_loss", "multilabel_margin_loss", "multi_margin_loss",
    "nll_loss", "norm", "normalize", "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal", "rsqrt", "sinh",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "renorm", "tan",
    "triplet_margin_loss",
})  # fmt: skip
"""Run in FP32."""

_16BIT = (torch.bfloat16, torch.float16)


class _Region(NamedTuple):
    """One autocast region: what it casts to, None where it is switched off."""

    dtype: torch.dtype | None


class Autocast:
    """The autocast regions that a program is in, and the casts of weights that are kept until the outermost ends."""

    def __init__(self) -> None:
        self._regions: list[_Region] = []
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    @property
    def dtype(self) -> torch.dtype | None:
        """The narrow type in force, if any."""
        return self._regions[-1].dtype if self._regions else None

    def enter(self, dtype: torch.dtype | None) -> None:
        """A region begins."""
        self._regions.append(_Region(dtype))

    def leave(self) -> None:
        """A region ends; with the outermost, the casts of weights go."""
        self._regions.pop()
        if not self._regions:
            self._casts.clear()

    def cast(self, func: Any, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments as autocast hands them to ``func``."""
        narrow = self.dtype
        name = getattr(func, "__name__", "")
        if narrow is None or (name not in _NARROW and name not in _WIDE):
            return args
        if name in _NARROW:
            return [self._narrowed(each, narrow) for each in args]
        return [each.float() if _is(each, _16BIT) else each for each in args]

    def _narrowed(self, value: Any, narrow: torch.dtype) -> Any:
        """A tensor in the narrow type: the cast of a weight is made once (aten/src/ATen/autocast_mode.cpp)."""
        if isinstance(value, (list, tuple)):
            return type(value)(self._narrowed(each, narrow) for each in value)
        if not _is(value, (torch.float32, *_16BIT)) or value.dtype is narrow:
            return value
        if value.dtype is not torch.float32 or not value.requires_grad or not value.is_leaf:
            return value.to(narrow)
        if id(value) not in self._casts:
            self._casts[id(value)] = (value, value.to(narrow))
        return self._casts[id(value)][1]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """PyTorch's autocast regions are these while inside."""
        here = self

        def start(region: Any, device_type: str, dtype: Any = None, enabled: Any = 1, *_: Any, **_more: Any) -> None:
            region.device, region.fast_dtype = device_type, dtype or torch.float16
            region._enabled, region._cache_enabled = bool(enabled), True

        def enter(region: Any) -> Any:
            here.enter(region.fast_dtype if region._enabled else None)
            return region

        def leave(*_args: Any) -> None:
            here.leave()

        with ExitStack() as patches:
            for name, new in (("__init__", start), ("__enter__", enter), ("__exit__", leave)):
                patches.enter_context(patch.object(torch.autocast, name, new))
            patches.enter_context(patch.object(torch.amp, "is_autocast_available", lambda *_: True))
            patches.enter_context(patch.object(torch, "is_autocast_enabled", lambda *_: here.dtype is not None))
            patches.enter_context(patch.object(torch, "get_autocast_dtype", lambda *_: here.dtype or torch.float16))
            yield


def _is(value: Any, dtypes: Sequence[torch.dtype]) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in dtypes
