"""The transformer of the policy: it reads a goal and the options, and scores the options."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.keys_values import Cache
from graphbench.models.layers import FullPrecisionLinear

INITIAL_SCALE = 0.02
"""Standard deviation of embeddings and of the last layer before training."""


class Layer(nn.Module):
    """A layer of a transformer: pre-norm attention and a feed-forward network, both residual."""

    def __init__(self, width: int, heads: int, number: int = 0) -> None:
        """Create a layer of the given width and number of attention heads; ``number`` is its place in a cache."""
        super().__init__()
        self.heads, self.number = heads, number
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor, cache: Cache | None = None) -> Tensor:
        """Return the states [B, T, d] after the layer.

        Args:
            x: [B, T, d].
            mask: bool [B, 1, T, P + T], or [B, 1, 1, P + T] if all tokens attend to the same tokens.
            cache: Keys and values of the P preceding tokens, which the new tokens are added to; None for P = 0.
        """
        count, tokens, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(count, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.extended(self.number, k, v)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(count, tokens, width))
        states: Tensor = x + self.down(F.gelu(self.up(self.second_norm(x))))
        return states


class Chooser(nn.Module):
    """A transformer over the goal and the options of a choice, with a score for every option.

    The tokens are the goal (a vector of bits) and the options (bits in the terms of the goal, and numbers). Bits
    and numbers are embedded by linear maps. There are no positions: options are a set.
    """

    def __init__(self, goal: int, numbers: int, width: int, heads: int, layers: int) -> None:
        """Create the network.

        Args:
            goal: Number of bits of a goal.
            numbers: Count of the numbers that describe an option.
            width: Width of the states.
            heads: Attention heads.
            layers: Layers.
        """
        super().__init__()
        self.goal = nn.Linear(goal, width)
        self.bits, self.numbers = nn.Linear(goal, width), nn.Linear(numbers, width)
        self.mixed = nn.Sequential(nn.GELU(), nn.Linear(width, width))
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.score = nn.LayerNorm(width), FullPrecisionLinear(width, 1, bias=False)
        nn.init.normal_(self.score.weight, std=INITIAL_SCALE)

    def forward(self, goal: Tensor, bits: Tensor, numbers: Tensor, there: Tensor) -> Tensor:
        """Return the logits of the options, float32 [w, C]; -inf where an option does not exist.

        Args:
            goal: [w, G].
            bits: [w, C, G].
            numbers: float32 [w, C, N].
            there: bool [w, C], whether each option exists.
        """
        options = self.mixed(self.bits(bits.float()) + self.numbers(numbers))
        x = torch.cat([self.goal(goal.float()).unsqueeze(1), options], dim=1)
        mask = F.pad(there, (1, 0), value=True)[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        logits: Tensor = self.score(self.norm(x[:, 1:])).squeeze(2)
        return logits.masked_fill(~there, -torch.inf)
