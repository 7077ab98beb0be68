"""A training step of your own: `rackrate fit --simulate examples/own-step/train_step.py:build --gpu a40`.

`build` makes the model and the optimizer and returns one step. It runs as it would on a card ("cuda" is
understood), but on tensors without values, so that it needs no card and no memory.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Attention and a feed-forward block, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        batch, tokens, width = x.shape
        heads = self.qkv(self.before_attention(x)).view(batch, tokens, 3, self.heads, -1).transpose(1, 3)
        query, key, value = heads.unbind(2)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.before_mlp(x))))


class Decoder(nn.Module):
    """A small decoder."""

    def __init__(self, width: int = 1024, layers: int = 24, heads: int = 16, vocabulary: int = 50_304) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Scores over the vocabulary."""
        return self.head(self.blocks(self.embedding(ids)))


def build() -> Callable[[], None]:
    """The model, the optimizer, and a step of mixed-precision training."""
    model = Decoder().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step() -> None:
        ids = torch.randint(50_304, (4, 1024), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(ids)
            loss = functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
