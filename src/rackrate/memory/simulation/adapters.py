"""Low-rank adapters as PEFT makes them."""

from __future__ import annotations

import torch
from torch import nn

from rackrate.memory.simulation.records import Adapters

_DTYPES = {2: torch.bfloat16, 4: torch.float32}

NAMES = {
    "q": ("q_proj", "query", "q_lin", "Wqkv", "query_key_value", "c_attn", "qkv_proj"),
    "k": ("k_proj", "key", "k_lin"),
    "v": ("v_proj", "value", "v_lin"),
    "o": ("o_proj", "out_proj", "dense", "c_proj", "out_lin"),
    "gate": ("gate_proj", "gate_up_proj", "w1", "wi_0"),
    "up": ("up_proj", "fc1", "c_fc", "dense_h_to_4h", "w3", "lin1", "wi_1", "wi"),
    "down": ("down_proj", "fc2", "dense_4h_to_h", "w2", "lin2", "wo"),
}
"""The last part of the paths of linear layers, by the target that they are."""


class LowRank(nn.Module):
    """A frozen linear layer with a low-rank branch beside it.

    The input is cast to the adapter's type, the sum back to the layer's own:
    huggingface/peft src/peft/tuners/lora/layer.py, Linear.forward.
    """

    def __init__(self, base: nn.Linear, rank: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, dtype=dtype)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, dtype=dtype)
        self.scaling = 2.0

    @property
    def weight(self) -> torch.Tensor:
        """The base's weight, whose type some models ask for."""
        return self.base_layer.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's output with the branch added."""
        result = self.base_layer(x)
        narrow = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.lora_B(self.lora_A(x)) * self.scaling
        return result.to(narrow)


def add_adapters(model: nn.Module, adapters: Adapters) -> int:
    """Freeze ``model`` and put adapters on its targeted linear layers; how many."""
    model.requires_grad_(requires_grad=False)
    wanted = {name for target in adapters.targets for name in (target, *NAMES.get(target, ()))}
    found = [(path, part) for path, part in model.named_modules() if path.rpartition(".")[2] in wanted]
    linear = [(path, part) for path, part in found if isinstance(part, nn.Linear)]
    for path, part in linear:
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, LowRank(part, adapters.rank, _DTYPES[adapters.element_bytes]))
    return len(linear)
