"""The keys and values of tokens that a transformer has read, kept so that it reads each token once."""

from __future__ import annotations

from torch import Tensor


class Cache:
    """Keys and values per layer, with room for further tokens; the room doubles when it is full.

    Args:
        layers: Number of layers.
        room: Tokens per text that are expected; more are kept, too.
    """

    def __init__(self, layers: int, room: int = 0) -> None:
        self.used = 0
        self._kept: list[Tensor | None] = [None] * layers
        self._room = room

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values [B, H, T, d] of new tokens, and return the keys and values of all tokens."""
        end = self.used + keys.shape[2]
        kept = self._with_room(layer, keys, end)
        for number, new in enumerate((keys, values)):
            kept[number, :, :, self.used : end] = new
        return kept[0, :, :, :end], kept[1, :, :, :end]

    def keep(self, rows: Tensor) -> None:
        """Forget the texts that are not among the rows, int64 [texts that are kept]."""
        self._kept = [None if kept is None else kept[:, rows] for kept in self._kept]

    def _with_room(self, layer: int, keys: Tensor, end: int) -> Tensor:
        kept = self._kept[layer]
        if kept is not None and kept.shape[3] >= end:
            return kept
        texts, heads, _, width = keys.shape
        grown = keys.new_zeros(2, texts, heads, max(end, self._room if kept is None else 2 * kept.shape[3]), width)
        if kept is not None:
            grown[:, :, :, : self.used] = kept[:, :, :, : self.used]
        self._kept[layer] = grown
        return grown
